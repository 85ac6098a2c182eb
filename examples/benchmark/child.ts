import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Child processes that run; each is killed by its handle on whatever way this process ends. */
const running = new Set<ChildProcess>()

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]] as const) {
  process.on(signal, () => process.exit(code))
}

/** Whether server and load can have a core each. */
export const isPinned = availableParallelism() >= 2 && spawnSync('taskset', ['-c', '0', 'true']).status === 0

interface Reply {
  readonly id: number
  readonly value?: unknown
  readonly error?: string
}

/** A process of the benchmark, asked over IPC. */
export class Child<Command> {
  readonly #process: ChildProcess
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void, reject: (error: Error) => void }>()
  #lastId = 0

  private constructor (child: ChildProcess) {
    this.#process = child
    running.add(child)
    child.on('message', (reply) => this.#settle(reply as Reply))
    child.on('exit', (code, signal) => {
      running.delete(child)
      this.#failAll(new Error(`The process ended by itself (${signal ?? code}).`))
    })
  }

  /** Starts the script `name` of this folder with the loader flags of this process, on one core when there are two. Its output goes to stderr. */
  static start<Command> (name: string, core: number, argument: unknown): Child<Command> {
    const script = fileURLToPath(new URL(`./${name}${extname(import.meta.url)}`, import.meta.url))
    const command = [process.execPath, ...process.execArgv, '--expose-gc', script, JSON.stringify(argument)]
    const [program = '', ...args] = isPinned ? ['taskset', '-c', String(core), ...command] : command
    return new Child(spawn(program, args, { stdio: ['ignore', 2, 2, 'ipc'] }))
  }

  /** What the child says by itself once it is ready (reply 0). */
  ready<Answer> (boundMs: number): Promise<Answer> {
    return this.#wait(0, boundMs)
  }

  /** Sends a command and resolves with its answer; rejects after `boundMs`, or when the process ends. */
  ask<Answer> (command: Command, boundMs: number): Promise<Answer> {
    const id = ++this.#lastId
    const answer = this.#wait<Answer>(id, boundMs)
    this.#process.send({ id, command }, (error) => {
      if (error !== null) this.#settle({ id, error: error.message })
    })
    return answer
  }

  /** Kills the process and resolves when it is gone. */
  async stop (): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    await new Promise((resolve) => {
      this.#process.once('exit', resolve)
      this.#process.kill('SIGKILL')
    })
  }

  #wait<Answer> (id: number, boundMs: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#settle({ id, error: `no answer within ${boundMs / 1000} s` }), boundMs)
      this.#waiting.set(id, {
        resolve: (value) => { clearTimeout(timer); resolve(value as Answer) },
        reject: (error) => { clearTimeout(timer); reject(error) }
      })
    })
  }

  #settle (reply: Reply): void {
    const waiter = this.#waiting.get(reply.id)
    if (waiter === undefined) return
    this.#waiting.delete(reply.id)
    if (reply.error === undefined) waiter.resolve(reply.value)
    else waiter.reject(new Error(reply.error))
  }

  #failAll (error: Error): void {
    for (const waiter of this.#waiting.values()) waiter.reject(error)
    this.#waiting.clear()
  }
}
