import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Test } from 'tap'

/** A script in a process of its own, away from the test runner's hooks, that is told to end by force and read line by line. */
export class LineChild {
  readonly process: ChildProcess
  readonly lines: AsyncIterator<string>
  readonly #interface: Interface

  constructor (t: Test, script: URL, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const flags = script.pathname.endsWith('.ts') ? ['--import', 'tsx', '--conditions=fastify-agents:source'] : []
    const child = this.process = spawn(process.execPath, [...flags, fileURLToPath(script), ...args], {
      stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: process.env['PATH'], ...env }
    })
    this.#interface = createInterface({ input: child.stdout as NodeJS.ReadableStream })
    this.lines = this.#interface[Symbol.asyncIterator]()
    t.teardown(async () => { await this.kill() })
  }

  /** The next line it says; empty when it has ended. */
  async line (): Promise<string> {
    const { done, value } = await this.lines.next()
    return done === true ? '' : value
  }

  /** Kills it as nothing can be caught; resolves when it is gone. */
  async kill (): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const exit = once(this.process, 'exit')
      this.process.kill('SIGKILL')
      await exit
    }
    this.#interface.close()
  }
}
