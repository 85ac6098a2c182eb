import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import websocket from '@fastify/websocket'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { textAgent } from '../../../../lib/agent/index.ts'
import { agentProtocol, h2cSafeHttp } from '../../../../plugins/agent-protocol/index.ts'

// What Java's HttpClient sends with every cleartext request.
const JAVA = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n'
const WEB_SOCKET = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

t.test('Java\'s requests are served beside somebody who takes upgrades, and WebSockets still reach him', async (t) => {
  const app = Fastify({ http: h2cSafeHttp })
  const { port, upgrades } = await serve(t, app)
  const body = '{"task_id":"t1","input":"x"}'
  t.match(await send(port, `POST /tasks HTTP/1.1\r\nHost: x\r\n${JAVA}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`), /^HTTP\/1\.1 200 [\s\S]*\{"task_id":"t1","status":"pending"\}/)
  t.match(await send(port, `GET /tasks/t1/wait HTTP/1.1\r\nHost: x\r\n${JAVA}\r\n`), /^HTTP\/1\.1 200 [\s\S]*"status":"success"/)
  t.match(await send(port, `POST /tasks/t1/cancel HTTP/1.1\r\nHost: x\r\n${JAVA}Content-Length: 0\r\n\r\n`), /^HTTP\/1\.1 200 /)
  t.strictSame(upgrades, [])
  t.match(await send(port, `GET /chat HTTP/1.1\r\nHost: x\r\n${WEB_SOCKET}\r\n`), /^HTTP\/1\.1 101 /)
  t.strictSame(upgrades, ['/chat'])
})

t.test('@fastify/websocket and Java\'s requests share a server', async (t) => {
  const app = Fastify({ http: h2cSafeHttp })
  await app.register(websocket)
  app.get('/chat', { websocket: true }, (socket) => { socket.send('hello') })
  const { port } = await serve(t, app, false)
  const body = '{"task_id":"t1","input":"x"}'
  t.match(await send(port, `POST /tasks HTTP/1.1\r\nHost: x\r\n${JAVA}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`), /^HTTP\/1\.1 200 [\s\S]*\{"task_id":"t1","status":"pending"\}/)
  t.match(await send(port, `GET /tasks/t1/wait HTTP/1.1\r\nHost: x\r\n${JAVA}\r\n`), /^HTTP\/1\.1 200 [\s\S]*"status":"success"/)
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET /chat HTTP/1.1\r\nHost: x\r\n${WEB_SOCKET}\r\n`)
  let received = Buffer.alloc(0)
  // A text frame of five bytes.
  const hello = Buffer.from('\x81\x05hello', 'latin1')
  while (!received.includes(hello)) received = Buffer.concat([received, ...await once(socket, 'data') as [Buffer]])
  t.match(received.toString('latin1'), /^HTTP\/1\.1 101 Switching Protocols/)
  socket.destroy()
})

t.test('a WebSocket request is served like any other where nobody takes upgrades', async (t) => {
  const app = Fastify({ http: h2cSafeHttp })
  const { port } = await serve(t, app, false)
  t.match(await send(port, `GET /agents HTTP/1.1\r\nHost: x\r\n${WEB_SOCKET}\r\n`), /^HTTP\/1\.1 200 /)
})

t.test('without it they are taken for upgrades', async (t) => {
  const { port, upgrades } = await serve(t, Fastify())
  t.match(await send(port, `GET /tasks/t1 HTTP/1.1\r\nHost: x\r\n${JAVA}\r\n`), /^HTTP\/1\.1 101 /)
  t.strictSame(upgrades, ['/tasks/t1'])
})

async function serve (t: Test, app: FastifyInstance, takesUpgrades = true): Promise<{ readonly port: number, readonly upgrades: readonly (string | undefined)[] }> {
  const upgrades: (string | undefined)[] = []
  if (takesUpgrades) {
    app.server.on('upgrade', (request, socket: Socket) => {
      upgrades.push(request.url)
      socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n')
    })
  }
  t.teardown(() => app.close())
  await app.register(agentProtocol, { agents: { agent: textAgent(() => 'done') } })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const address = app.server.address()
  return { port: typeof address === 'object' && address !== null ? address.port : 0, upgrades }
}

/** Sends bytes and gives the first response's, up to the end of its body. */
async function send (port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  let text = ''
  try {
    for (;;) {
      const [chunk] = await once(socket, 'data') as [Buffer]
      text += String(chunk)
      const length = /content-length: (\d+)/i.exec(text)?.[1]
      const at = text.indexOf('\r\n\r\n')
      if (at !== -1 && (length === undefined || text.length - at - 4 >= Number(length))) return text
    }
  } finally {
    socket.destroy()
  }
}
