import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const examples = [
  { name: 'two servers and an approval between them', file: 'examples/remote-agent.ts', says: /The desk says: All done\./ },
  { name: 'agents chosen by name and tenant, behind a parent', file: 'examples/tenants.ts', says: /red: Nobody does parcels here\. Red Ltd is owed 40 GBP\./ }
]

for (const { name, file, says } of examples) {
  t.test(`the example of ${name} checks itself, and ends`, async (t) => {
    const child = spawn(process.execPath, ['--import', 'tsx', '--conditions=fastify-agents:source', file], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)), stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'] }
    })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => { output += chunk.toString() })
    child.stderr.on('data', (chunk: Buffer) => { output += chunk.toString() })
    const [code] = await once(child, 'close')
    t.equal(code, 0, output)
    t.match(output, says)
  })
}
