// Five thousand clients that connect and are reset or leave, and what is left of them.
import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import { leftBy } from '../../../helpers/leaks.ts'
import { buildApp, turn } from '../app.ts'

const RESETS = 5_000
const TOGETHER = 50

const { app, port } = await buildApp({ teardown () {} })
// The topic is full: from here on it keeps as much as it lets go of.
for (let n = 0; n < 256; n++) app.bus.publish('a', { data: 'x'.repeat(10) })

async function visit (n: number): Promise<void> {
  const socket = connectSocket(port, '127.0.0.1')
  socket.write(`${n % 10 === 0 ? 'HEAD' : 'GET'} /events/a?from=start HTTP/1.1\r\nHost: a\r\n${n % 3 === 0 ? 'Last-Event-ID: gone.1\r\n' : ''}\r\n`)
  await once(socket, 'data')
  if (n % 100 === 0) app.bus.publish('a', { data: n })
  const closed = once(socket, 'close')
  if (n % 2 === 0) socket.resetAndDestroy()
  else socket.destroy()
  await closed
}

async function visits (count: number): Promise<void> {
  let n = 0
  await Promise.all(Array.from({ length: TOGETHER }, async () => { while (n < count) await visit(n++) }))
}

const connections = (): Promise<number> => new Promise((resolve) => { app.server.getConnections((_, count) => { resolve(count) }) })

const leftovers = await leftBy(RESETS, {
  emitters: [app.server],
  serve: visits,
  async settle () { while ((app.bus.find('a')?.readers ?? 0) > 0 || (await connections()) > 0) await turn() }
})
console.log(JSON.stringify({ resets: RESETS, readers: app.bus.find('a')?.readers, topics: app.bus.size, connections: await connections(), ...leftovers }))
process.exit(0)
