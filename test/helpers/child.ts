import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Runs a script in a process of its own, away from the test runner's hooks, and resolves with the JSON of its last line of
 * output. Its environment is empty but for the path.
 */
export async function runScript (script: URL, ...args: readonly string[]): Promise<unknown> {
  const flags = ['--import', 'tsx', '--conditions=fastify-agents:source', '--expose-gc']
  const child = spawn(process.execPath, [...flags, fileURLToPath(script), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'] }
  })
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => { output += text })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { errors += text })
  const code = await new Promise<number | null>((resolve) => { child.once('close', resolve) })
  if (code !== 0) throw new Error(`${script.pathname} ended with ${String(code)}: ${errors}${output}`)
  return JSON.parse(output.trim().split('\n').at(-1) ?? '')
}
