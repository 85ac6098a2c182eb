import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import t from 'tap'
import { buildApp, turn } from './app.ts'

const CONNECTS = 5_000
const TOGETHER = 50
const MEBIBYTE = 1024 * 1024

// A process of its own, as every test file is: its heap is this test's alone.
t.test('five thousand connects and resets leave no listener, timer, handle or heap behind', async (t) => {
  const { app, port } = await buildApp(t)
  app.bus.publish('a', { data: 'x'.repeat(1000) })

  const visit = async (n: number): Promise<void> => {
    const socket = connectSocket(port, '127.0.0.1')
    socket.write(`${n % 10 === 0 ? 'HEAD' : 'GET'} /events/a?from=start HTTP/1.1\r\nHost: a\r\n${n % 3 === 0 ? 'Last-Event-ID: gone.1\r\n' : ''}\r\n`)
    await once(socket, 'data')
    if (n % 100 === 0) app.bus.publish('a', { data: n })
    const closed = once(socket, 'close')
    if (n % 2 === 0) socket.resetAndDestroy()
    else socket.destroy()
    await closed
  }
  const visits = async (count: number): Promise<void> => {
    let n = 0
    await Promise.all(Array.from({ length: TOGETHER }, async () => { while (n < count) await visit(n++) }))
    while ((app.bus.find('a')?.readers ?? 0) > 0 || (await connections()) > 0) await turn()
  }
  const connections = (): Promise<number> => new Promise((resolve) => { app.server.getConnections((_, count) => { resolve(count) }) })
  const collected = async (): Promise<number> => {
    for (let round = 0; round < 2; round++) {
      await turn()
      global.gc?.()
    }
    return process.memoryUsage().heapUsed
  }
  const census = (): unknown => ({
    resources: process.getActiveResourcesInfo().filter((name) => name !== 'Immediate').sort(),
    server: app.server.eventNames().map((name) => [name, app.server.listenerCount(name)]),
    process: process.eventNames().map((name) => [name, process.listenerCount(name)]),
    topics: app.bus.size
  })

  await visits(1000)
  const heap = await collected()
  const before = census()
  await visits(CONNECTS)
  const grown = await collected() - heap
  t.same(census(), before)
  t.ok(grown < 2 * MEBIBYTE, `the heap grew by ${grown} bytes`)
})
