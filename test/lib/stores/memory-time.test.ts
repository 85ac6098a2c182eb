import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { memoryStore, type Store } from 'fastify-agents/stores'
import { Clock, finish, interrupt, present, start } from './bench.ts'

/** A store whose clock and sweep timer the test moves. */
function timed (t: Test): { readonly store: Store, readonly pass: (ms: number) => void } {
  mock.timers.enable({ apis: ['setInterval', 'Date'], now: 1_700_000_000_000 })
  t.teardown(() => mock.timers.reset())
  const store = memoryStore({ sweepMs: 1_000, endedTtlMs: 60_000 })
  t.teardown(() => store.close())
  return { store, pass: (ms) => mock.timers.tick(ms) }
}

t.test('keeps an ended run for its time and no longer, a running and a waiting one as long as it takes', async (t) => {
  const clock = new Clock()
  const store = memoryStore({ endedTtlMs: 60_000, now: clock.now })
  const [ended, own, going, waits] = [await start(store), await start(store), await start(store), await start(store)]
  const keys = [ended, own, going, waits].map(({ key }) => key)
  await finish(store, ended)
  await store.runs.update(own.key, { version: 1 }, { state: 'failed', expiresAt: clock.time + 90_000 })
  await store.runs.update(waits.key, { version: 1 }, { state: 'waiting' })
  clock.time += 59_999
  t.equal((await present(store, keys)).length, 4)
  await store.runs.update(ended.key, { version: 2 }, { links: { resumedBy: 'x' } })
  clock.time += 1
  t.same(await present(store, keys), [own, going, waits].map(({ key }) => key.id))
  clock.time += 30_000
  t.same(await present(store, keys), [going, waits].map(({ key }) => key.id))
  clock.time += 86_400_000
  t.same(await present(store, keys), [going, waits].map(({ key }) => key.id))
  await store.close()
})

t.test('shows nothing of a run whose time has come, before any sweep', async (t) => {
  const clock = new Clock()
  const store = memoryStore({ now: clock.now })
  const record = await start(store)
  const { key } = record
  await store.runs.commit(key, { version: 1, fence: 1, op: 'x' }, { patch: { state: 'waiting', expiresAt: clock.time + 1_000 }, firstSeq: 1, events: [], interrupts: [interrupt('i')] })
  await store.nodes.bind('n', key)
  const leased = await start(store)
  await store.runs.update(leased.key, { version: 1 }, { expiresAt: clock.time + 1_000 })
  clock.time += 20_000
  t.same(await store.interrupts.open({}, 'fake', 's'), [])
  t.same(await store.leases.expired({ protocols: ['fake'], limit: 10 }), [])
  t.same(await store.nodes.orphans({ protocols: ['fake'], limit: 10 }), [])
  await store.close()
})

t.test('sweeps what has run out by a timer that holds no process and stops with the last thing', async (t) => {
  const { store, pass } = timed(t)
  const timers: { unref (): void }[] = []
  const original = globalThis.setInterval
  let unrefs = 0
  t.intercept(globalThis, 'setInterval', {
    value: (...args: Parameters<typeof setInterval>) => {
      const timer = original(...args)
      const { unref } = timer
      timer.unref = () => {
        unrefs++
        return unref.call(timer)
      }
      timers.push(timer)
      return timer
    }
  })
  const record = await start(store)
  await store.kv.set({ owner: {}, space: 's', key: 'k' }, 1, 5_000)
  await store.gates.enter({}, 's', { id: 'a', ms: 5_000 })
  await store.gates.enter({}, 's', { id: 'b', ms: 8_000 })
  await store.nodes.beat('n', 5_000)
  await store.index.add({ key: { owner: {}, protocol: 'fake', id: 'never written' }, clientId: 'c', session: 's', createdAt: 1 })
  t.same([timers.length, unrefs], [1, 1])
  await finish(store, record)
  pass(61_000)
  t.equal(await store.runs.get(record.key), undefined)
  await store.kv.set({ owner: {}, space: 's', key: 'k' }, 1, 5_000)
  t.equal(timers.length, 1, 'the index entry without a record is still waited for')
  pass(600_000)
  await store.kv.set({ owner: {}, space: 's', key: 'k' }, 1, 5_000)
  t.equal(timers.length, 2, 'it had stopped, and runs again')
  pass(6_000)
  await start(store)
  t.equal(timers.length, 3)
  await store.close()
  await start(store)
  await store.close()
  t.equal(timers.length, 3, 'a closed store starts none')
})
