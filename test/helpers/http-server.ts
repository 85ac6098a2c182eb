import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, type Socket } from 'node:net'

interface Teardown { teardown (fn: () => unknown): unknown }

/** A plain server on loopback. */
export interface PlainServer {
  readonly url: string
  readonly port: number
  readonly server: Server
  /** Connections that are open at the moment. */
  readonly sockets: ReadonlySet<Socket>
}

/** Starts a plain server that ends with the test, whatever its clients have left open. */
export async function listen (t: Teardown, listener: RequestListener): Promise<PlainServer> {
  const sockets = new Set<Socket>()
  const server = createServer(listener)
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => { sockets.delete(socket) })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const closed = once(server, 'close')
  t.teardown(async () => {
    server.close()
    server.closeAllConnections()
    await closed
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, server, sockets }
}
