import t from 'tap'
import { FaultPlan, faultyStore, memoryStore } from 'fastify-agents/stores'
import { start } from './bench.ts'

const failure = { code: 'AGT_ERR_STORE_UNAVAILABLE' }
const key = { owner: {}, space: 's', key: 'k' }

t.test('passes everything on while nothing is planned, and counts', async (t) => {
  const plan = new FaultPlan()
  const store = faultyStore(memoryStore(), plan)
  const record = await start(store)
  t.same(await store.runs.get(record.key), record)
  t.same([plan.count('runs.get'), plan.count('runs.create'), plan.count('log.append'), plan.count()], [1, 1, 0, 3])
  await store.close()
  t.equal(plan.count('close'), 1)
})

t.test('fails the calls it is told to, before or after their effect', async (t) => {
  const plan = new FaultPlan()
  const store = faultyStore(memoryStore(), plan)
  plan.failBefore('kv.set', { skip: 1, times: 2 })
  await store.kv.set(key, 1, 1_000)
  await t.rejects(store.kv.set(key, 2, 1_000), failure)
  await t.rejects(store.kv.set(key, 3, 1_000), failure)
  t.equal(await store.kv.get(key), 1)
  await store.kv.set(key, 4, 1_000)
  plan.failAfter('kv.set')
  await t.rejects(store.kv.set(key, 5, 1_000), failure)
  t.equal(await store.kv.get(key), 5, 'the acknowledgement was lost, not the effect')
  plan.failAfter('*', { times: 2 })
  await t.rejects(store.kv.get(key), failure)
  await t.rejects(store.gates.holder({}, 's'), failure)
  t.equal(await store.kv.get(key), 5)
  plan.failBefore('*', { times: Infinity })
  await t.rejects(store.kv.get(key), failure)
  await t.rejects(store.close(), failure)
  plan.heal()
  t.equal(await store.kv.get(key), 5)
  await store.close()
})

t.test('holds calls at a gate, before or after their effect, until it is opened', async (t) => {
  const plan = new FaultPlan()
  const inner = memoryStore()
  const store = faultyStore(inner, plan)
  const before = plan.hold('kv.set')
  const settled: string[] = []
  const first = store.kv.set(key, 1, 1_000).then(() => settled.push('first'))
  const second = store.kv.set(key, 2, 1_000).then(() => settled.push('second'))
  await before.arrived
  await store.kv.get(key)
  t.same([settled, await inner.kv.get(key)], [[], undefined])
  before.release()
  await Promise.all([first, second])
  t.same([settled, await inner.kv.get(key)], [['first', 'second'], 2])
  await store.kv.set(key, 3, 1_000)
  const after = plan.hold('kv.set', { moment: 'after', skip: 1, times: 1 })
  await store.kv.set(key, 4, 1_000)
  const held = store.kv.set(key, 5, 1_000).then(() => settled.push('held'))
  await after.arrived
  await store.kv.set(key, 6, 1_000)
  t.same([settled, await inner.kv.get(key)], [['first', 'second'], 6], 'only one call was to be held')
  plan.heal()
  await held
  after.release()
  t.same(settled, ['first', 'second', 'held'])
  await store.close()
})

t.test('fails a held call after its release if that is planned too', async (t) => {
  const plan = new FaultPlan()
  const inner = memoryStore()
  const store = faultyStore(inner, plan)
  const hold = plan.hold('kv.set')
  plan.failBefore('kv.set')
  const held = store.kv.set(key, 1, 1_000)
  await hold.arrived
  hold.release()
  await t.rejects(held, failure)
  t.equal(await inner.kv.get(key), undefined)
  await store.close()
})

t.test('does the same at random for the same seed, at the rates asked for', async (t) => {
  const outcomes = async (seed: number): Promise<string> => {
    const inner = memoryStore()
    const store = faultyStore(inner, new FaultPlan({ seed, before: 0.2, after: 0.2, slow: 0.2 }))
    let text = ''
    for (let i = 0; i < 400; i++) {
      const outcome = await store.kv.set(key, i, 1_000).then(() => 'ok', () => 'failed')
      const isThere = await inner.kv.get(key) === i
      text += outcome === 'ok' ? 'o' : isThere ? 'a' : 'b'
    }
    await store.close()
    return text
  }
  const first = await outcomes(7)
  t.equal(await outcomes(7), first)
  t.not(await outcomes(8), first)
  const share = (letter: string) => [...first].filter((each) => each === letter).length / first.length
  t.ok(share('b') > 0.1 && share('b') < 0.3, 'about a fifth without effect')
  t.ok(share('a') > 0.08 && share('a') < 0.25, 'about a fifth of the rest with a lost acknowledgement')
})

t.test('hits at random only the operations named, and never close of itself', async (t) => {
  const plan = new FaultPlan({ seed: 1, before: 1, operations: ['kv.set'] })
  const store = faultyStore(memoryStore(), plan)
  await t.rejects(store.kv.set(key, 1, 1_000), failure)
  t.equal(await store.kv.get(key), undefined)
  plan.randomly({ seed: 1, before: 1 })
  await t.rejects(store.kv.get(key), failure)
  await store.close()
})
