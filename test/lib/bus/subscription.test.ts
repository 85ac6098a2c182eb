import { ReadableStream } from 'node:stream/web'
import { from, lastValueFrom, type ObservableInput, take, toArray } from 'rxjs'
import t from 'tap'
import { EventBus, type SubscriptionItem } from '../../../lib/bus/index.ts'
import { collect, delivered, makeTopic } from './recorder.ts'

t.test('gives what is published: strings as they are, anything else as JSON', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  const subscription = bus.subscribe('orders')
  const published: unknown[] = ['raw\ntext', { id: 1 }, [1, null], 7, true, null, '']
  t.strictSame(published.map((data, index) => bus.publish('orders', index === 1 ? { event: 'order', data } : { data })), [1, 2, 3, 4, 5, 6, 7])
  const epoch = bus.find('orders')?.epoch
  const items: SubscriptionItem[] = []
  for await (const item of subscription) if (items.push(item) === published.length) break
  t.strictSame(items, [
    { id: `${epoch}.1`, data: 'raw\ntext' },
    { id: `${epoch}.2`, event: 'order', data: '{"id":1}' },
    { id: `${epoch}.3`, data: '[1,null]' },
    { id: `${epoch}.4`, data: '7' },
    { id: `${epoch}.5`, data: 'true' },
    { id: `${epoch}.6`, data: 'null' },
    { id: `${epoch}.7`, data: '' }
  ])
  t.equal(bus.find('orders')?.readers, 0, 'leaving the loop ends the subscription')
  t.equal(subscription.isClosed, true)
})

t.test('starts live, at the start, or behind an id', async (t) => {
  const bus = new EventBus({ replay: { maxEvents: 3 } })
  t.teardown(() => bus.close())
  for (let n = 1; n <= 5; n++) bus.publish('t', { data: n })
  const epoch = bus.find('t')?.epoch
  const [four, five, six] = [4, 5, 6].map((n) => ({ id: `${epoch}.${n}`, data: String(n) }))
  const subscriptions = [
    bus.subscribe('t'), bus.subscribe('t', { from: 'start' }), bus.subscribe('t', { after: `${epoch}.4`, from: 'live' }), bus.subscribe('t', { after: { seq: 1 } }),
    bus.subscribe('t', { after: 'other.4' }), bus.subscribe('t', { after: `${epoch}.6` }), bus.subscribe('t', { after: 'x' }), bus.subscribe('t', { after: { seq: 2 } })
  ]
  bus.publish('t', { data: 6 })
  bus.find('t')?.end()
  const told = await Promise.all(subscriptions.map((subscription) => collect(subscription)))
  const lagged = { id: `${epoch}.3`, event: 'gap', data: '{"oldest":4}' }
  t.strictSame(told.map((items) => items.map((item) => item.event ?? item.data)), [
    ['6'], ['gap', '4', '5', '6'], ['5', '6'], ['gap', '4', '5', '6'], ['gap', '4', '5', '6'], ['gap', '4', '5', '6'], ['gap', '4', '5', '6'], ['gap', '4', '5', '6']
  ])
  t.strictSame(told[1], [lagged, four, five, six])
})

t.test('tells a subscriber that reads too slowly what it has lost', async (t) => {
  const bus = new EventBus({ replay: { maxEvents: 2 } })
  t.teardown(() => bus.close())
  const subscription = bus.subscribe('t')
  bus.publish('t', { data: 1 })
  t.equal((await subscription.next()).value?.data, '1')
  for (let n = 2; n <= 9; n++) bus.publish('t', { data: n })
  const told: (string | undefined)[] = []
  for (let n = 0; n < 3; n++) {
    const { value } = await subscription.next()
    told.push(value?.event, value?.data)
  }
  t.strictSame(told, ['gap', '{"oldest":8}', undefined, '8', undefined, '9'])
})

t.test('who waits is served in the order of asking', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  const subscription = bus.subscribe('t')
  const asked = [subscription.next(), subscription.next()]
  bus.publish('t', { data: 'a' })
  asked.push(subscription.next())
  bus.publish('t', { data: 'b' })
  bus.publish('t', { data: 'c' })
  t.strictSame((await Promise.all(asked)).map(({ value }) => value?.data), ['a', 'b', 'c'])
})

t.test('sees no further than what is stored', async (t) => {
  const { topic } = makeTopic(t, {}, { watermark: 'manual' })
  const subscription = topic.subscribe({ from: 'start' })
  const first = subscription.next()
  topic.append({ data: 'a' })
  topic.append({ data: 'b' })
  topic.end()
  await delivered()
  topic.markStored(1)
  t.equal((await first).value?.data, 'a')
  const rest = collect(subscription)
  topic.markStored(2)
  t.strictSame((await rest).map((item) => item.data), ['b'])
})

t.test('ends with its signal, leaving no listener', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  const controller = new AbortController()
  const subscription = bus.subscribe('t', { signal: controller.signal })
  const waiting = [subscription.next(), subscription.next()]
  controller.abort()
  t.strictSame(await Promise.all(waiting), [{ done: true, value: undefined }, { done: true, value: undefined }])
  t.strictSame(await subscription.next(), { done: true, value: undefined })
  t.equal(bus.size, 0, 'the topic, which was empty, is gone')

  const aborted = bus.subscribe('t', { signal: AbortSignal.abort() })
  t.strictSame(await aborted.next(), { done: true, value: undefined })
  t.equal(bus.size, 0)

  const signal = new AbortController().signal
  const removed: string[] = []
  signal.removeEventListener = (type) => { removed.push(type) }
  const left = bus.subscribe('t', { signal })
  await left.return()
  left.close()
  t.strictSame(removed, ['abort'])
})

t.test('is a web stream that reads nothing ahead and whose cancellation ends it', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  const subscription = bus.subscribe('t')
  const stream = subscription.toReadableStream()
  t.ok(stream instanceof ReadableStream)
  bus.publish('t', { data: 'a' })
  bus.publish('t', { data: 'b' })
  const reader = stream.getReader()
  t.strictSame((await reader.read()).value?.data, 'a')
  t.equal((await subscription.next()).value?.data, 'b', 'the stream has not taken it')
  const pending = reader.read()
  await reader.cancel()
  t.strictSame(await pending, { done: true, value: undefined })
  t.equal(subscription.isClosed, true)
  t.equal(bus.find('t')?.readers, 0)
})

t.test('the web stream closes with the topic', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  const stream = bus.subscribe('t').toReadableStream()
  bus.publish('t', { data: 'a' })
  bus.find('t')?.end()
  t.strictSame((await collect(stream)).map((item) => item.data), ['a'])
})

t.test('works with the from() of RxJS, as an iterable and as a web stream', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  const data = (items: SubscriptionItem[]): string[] => items.map((item) => item.data)
  const stream = bus.subscribe('t')
  const web: ObservableInput<SubscriptionItem> = stream.toReadableStream() as AsyncIterable<SubscriptionItem> // its own types take the DOM's stream for it
  const iterable = bus.subscribe('t')
  const two = lastValueFrom(from(iterable).pipe(take(2), toArray()))
  const all = lastValueFrom(from(web).pipe(toArray()))
  for (const n of [1, 2, 3]) {
    bus.publish('t', { data: n })
    await delivered()
  }
  bus.find('t')?.end()
  t.strictSame(data(await two), ['1', '2'])
  t.strictSame(data(await all), ['1', '2', '3'])
  await delivered()
  t.equal(iterable.isClosed, true)
  t.equal(stream.isClosed, true)
})

t.test('refuses what JSON cannot hold, and names that would break a line', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  for (const data of [undefined, () => {}, Symbol('s'), 1n, cyclic, { toJSON: () => undefined }]) {
    t.throws(() => bus.publish('t', { data }), { code: 'AGT_ERR_BUS_EVENT_DATA' })
  }
  const raw: unknown = { toJSON () { throw new Error('mine') } }
  try {
    bus.publish('t', { data: raw })
    t.fail('must throw')
  } catch (error) {
    t.match(error, { code: 'AGT_ERR_BUS_EVENT_DATA', cause: { message: 'mine' } })
  }
  for (const event of ['x\ndata: forged\n\n', 'a\rb', 'a\r\n', 'a\0b', '\n']) {
    t.throws(() => bus.publish('t', { event, data: 'x' }), { code: 'AGT_ERR_BUS_EVENT_NAME' })
  }
  t.equal(bus.publish('t', { event: 'fine: "é"\t', data: 'x' }), 1, 'nothing of it was appended')
})
