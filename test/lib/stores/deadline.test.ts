import { mock } from 'node:test'
import t from 'tap'
import {
  FaultPlan, faultyStore, memoryStore, STORE_OPERATIONS, StoreFullError, StoreUnavailableError, withDeadline, wrapStore, type Store
} from 'fastify-agents/stores'
import { start } from './bench.ts'

/** Every operation of a store, as a call without meaning: for stores that do not look at what they are asked. */
function callsOf (store: Store): readonly (readonly [string, () => Promise<unknown>])[] {
  const ports = Object.entries(STORE_OPERATIONS).flatMap(([port, operations]) => Object.keys(operations).map((name) => {
    const methods = store[port as keyof typeof STORE_OPERATIONS] as unknown as Record<string, () => Promise<unknown>>
    return [`${port}.${name}`, async () => await methods[name]?.()] as const
  }))
  return [...ports, ['close', () => store.close()]]
}

t.test('settles every operation of a store that hangs', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const hanging = wrapStore(memoryStore(), () => new Promise(() => {}))
  const calls = callsOf(withDeadline(hanging, 2_000)).map(([name, call]) => [name, call().catch((error: unknown) => error)] as const)
  mock.timers.tick(1_999)
  const settled: string[] = []
  const watched = calls.map(([name, call]) => call.then(() => settled.push(name)))
  await new Promise((resolve) => setImmediate(resolve))
  t.same(settled, [])
  mock.timers.tick(1)
  for (const [name, call] of calls) {
    t.match(await call, { code: 'AGT_ERR_STORE_UNAVAILABLE', statusCode: 503, message: new RegExp(`did not complete ${name};`) }, name)
  }
  t.equal((await Promise.all(watched)).length, 43)
})

t.test('passes results and coded errors, wraps others with their cause', async (t) => {
  const store = withDeadline(memoryStore(), 2_000)
  const record = await start(store)
  t.same(await store.runs.get(record.key), record)
  const refused = new Error('connect ECONNREFUSED')
  const full = new StoreFullError('maxRuns', 1)
  const foreign = Object.assign(new Error('x'), { code: 'ECONNRESET' })
  for (const [thrown, wanted] of [
    [refused, { code: 'AGT_ERR_STORE_UNAVAILABLE', cause: refused }], [foreign, { code: 'AGT_ERR_STORE_UNAVAILABLE', cause: foreign }],
    [undefined, { code: 'AGT_ERR_STORE_UNAVAILABLE', cause: undefined }], [full, full]
  ] as const) {
    const failing = withDeadline(wrapStore(memoryStore(), () => { throw thrown }), 2_000)
    await t.rejects(failing.runs.get(record.key), wanted)
    const rejecting = withDeadline(wrapStore(memoryStore(), () => Promise.reject(thrown)), 2_000)
    await t.rejects(rejecting.runs.get(record.key), wanted)
  }
  await store.close()
})

t.test('leaves no timer behind and no rejection unheard', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const inner = memoryStore()
  const plan = new FaultPlan()
  const store = withDeadline(faultyStore(inner, plan), 1_000)
  await start(store)
  mock.timers.tick(10_000)
  const hold = plan.hold('runs.get')
  plan.failAfter('runs.get')
  const late = store.runs.get({ owner: {}, protocol: 'p', id: 'x' })
  await hold.arrived
  mock.timers.tick(1_000)
  await t.rejects(late, { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  hold.release()
  await new Promise((resolve) => setImmediate(resolve))
  await store.close()
})

t.test('ends a subscription that came after its deadline', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const inner = memoryStore()
  const plan = new FaultPlan()
  const store = withDeadline(faultyStore(inner, plan), 1_000)
  const hold = plan.hold('signals.subscribe')
  const channel = { kind: 'node', node: 'n' } as const
  const late = store.signals.subscribe(channel, { message: () => t.fail('nobody waits for it') })
  await hold.arrived
  mock.timers.tick(1_000)
  await t.rejects(late, { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  hold.release()
  await new Promise((resolve) => setImmediate(resolve))
  await inner.signals.publish(channel, 1)
  await new Promise((resolve) => setImmediate(resolve))
  const intime = await store.signals.subscribe(channel, { message: () => {} })
  intime()
  await inner.close()
})

t.test('is the error of a store that is away', async (t) => {
  t.match(new StoreUnavailableError('log.append'), { code: 'AGT_ERR_STORE_UNAVAILABLE', message: 'The store did not complete log.append; try again later.' })
})
