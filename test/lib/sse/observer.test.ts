import { mock } from 'node:test'
import t from 'tap'
import { EventBus } from '../../../lib/bus/index.ts'
import { SseHub, sseView, type SseHubOptions } from '../../../lib/sse/index.ts'
import { connect } from '../../helpers/sse-client.ts'
import { deferred, serve } from '../../helpers/sse-server.ts'

const STALLING = Buffer.alloc(16 * 1024 * 1024, `data: ${'x'.repeat(56)}\n\n`)

t.beforeEach(() => { mock.timers.enable({ apis: ['setInterval', 'setTimeout'] }) })
t.afterEach(() => { mock.timers.reset() })

/** A hub whose observer writes down what it is told, and a server that gives the test each of its streams. */
async function observed (t: { teardown (fn: () => unknown): unknown }, options: SseHubOptions = {}) {
  const lines: string[] = []
  let closed = deferred<undefined>()
  const hub = new SseHub({
    ...options,
    observer: {
      opened: (reply, about) => {
        lines.push(`opened ${reply.request.method} ${JSON.stringify(about)}`)
        return { gap: (reason) => { lines.push(`gap ${reason}`) }, closed: (outcome) => { lines.push(outcome); closed.resolve(undefined) } }
      }
    }
  })
  let opened = deferred<ReturnType<SseHub['open']>>()
  const { port } = await serve(t, (reply) => { opened.resolve(hub.open(reply, { run: 1 })) })
  return {
    hub,
    lines,
    closed: async () => { await closed.promise },
    async open () {
      opened = deferred()
      closed = deferred()
      lines.length = 0
      const client = await connect('GET', '/', { port })
      return { client, response: await opened.promise }
    }
  }
}

t.test('an observer is told how each stream ended, once, with what its opener said of it', async (t) => {
  const { hub, lines, closed, open } = await observed(t, { heartbeatMs: 0, writeTimeoutMs: 8_000 })
  const opened = 'opened GET {"run":1}'

  const whole = await open()
  whole.response.end('data: x\n\n')
  await whole.client.text()
  await closed()
  t.same(lines, [opened, 'ended'])

  const left = await open()
  left.client.destroy()
  await closed()
  t.same(lines, [opened, 'disconnected'])

  const stalled = await open()
  stalled.response.write(STALLING)
  for (let second = 0; second < 9; second++) mock.timers.tick(1_000)
  await closed()
  t.same(lines, [opened, 'write-timeout'])
  stalled.client.destroy()

  const last = await open()
  const closing = hub.close()
  await last.client.text()
  await closing
  t.same(lines, [opened, 'closed'])
})

t.test('a stream that grows too old is told apart from a reader that takes nothing', async (t) => {
  const { lines, closed, open } = await observed(t, { heartbeatMs: 0, writeTimeoutMs: 0, streamTimeoutMs: 60_000 })
  const { client, response } = await open()
  for (let second = 0; response.isOpen; second++) mock.timers.tick(1_000)
  await client.text()
  await closed()
  t.same(lines, ['opened GET {"run":1}', 'stream-timeout'])
})

t.test('an observer is told of gaps, of readers that are cut, and of a bus that is closed', async (t) => {
  const { lines, closed, open } = await observed(t)
  const bus = new EventBus({ replay: { maxEvents: 2 } })
  const topic = bus.topic('t')
  for (let i = 0; i < 5; i++) topic.append({ data: `${i}` })

  const late = await open()
  late.response.follow(topic, { view: sseView(), after: { seq: 1 } })
  topic.end()
  await late.client.text()
  await closed()
  t.same(lines, ['opened GET {"run":1}', 'gap trimmed', 'ended'])

  const second = bus.topic('second')
  const slow = await open()
  slow.response.follow(second, { view: sseView(), maxLagBytes: 1_000 })
  for (let i = 0; i < 400; i++) {
    second.append({ data: 'x'.repeat(64 * 1024) })
    await new Promise((resolve) => { process.nextTick(resolve) })
  }
  await slow.client.text()
  await closed()
  t.equal(lines.at(-1), 'lagged')

  const third = await open()
  third.response.follow(bus.topic('third'), { view: sseView() })
  bus.close()
  await third.client.text()
  await closed()
  t.same(lines, ['opened GET {"run":1}', 'closed'])
})
