import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'

t.test('the example of two servers checks itself, and ends', async (t) => {
  const child = spawn(process.execPath, ['--import', 'tsx', '--conditions=fastify-agents:source', 'examples/remote-agent.ts'], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)), stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'] }
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => { output += chunk.toString() })
  child.stderr.on('data', (chunk: Buffer) => { output += chunk.toString() })
  const [code] = await once(child, 'close')
  t.equal(code, 0, output)
  t.match(output, /The desk says: All done\./)
})
