import { type Cases, kinds, rivals } from './harness.ts'

const key = { owner: { id: 'ann' }, space: 'dedupe', key: 'k' }

/** Small values with a time to live (R15). */
export const kvCases: Cases = {
  'keeps a value for its time, and a deleted one not at all': async (t, { store, peer, advance }) => {
    t.equal(await store.kv.get(key), undefined)
    for (const value of ['', 'text \u2028 \ud83d', 0, -1.5, true, false, null, [], {}, [[], {}], { list: [], deep: { nothing: null } }]) {
      await store.kv.set(key, value, 10_000)
      t.same(await peer.kv.get(key), value)
    }
    await advance(9_000)
    t.same(await peer.kv.get(key), { list: [], deep: { nothing: null } })
    await store.kv.set(key, 'longer', 10_000)
    await advance(9_000)
    t.equal(await peer.kv.get(key), 'longer')
    await advance(1_000)
    t.equal(await peer.kv.get(key), undefined)
    await store.kv.set(key, 'new', 10_000)
    await store.kv.delete(key)
    await store.kv.delete(key)
    t.equal(await peer.kv.get(key), undefined)
  },

  'sets what is absent once': async (t, { store, peer, advance }) => {
    t.same(await store.kv.setIfAbsent(key, { by: 1 }, 10_000), { kind: 'set' })
    t.same(await peer.kv.setIfAbsent(key, { by: 2 }, 60_000), { kind: 'exists', value: { by: 1 } })
    await advance(10_000)
    t.same(await peer.kv.setIfAbsent(key, null, 10_000), { kind: 'set' }, 'a refused one prolongs nothing')
    t.same(await store.kv.setIfAbsent(key, 1, 10_000), { kind: 'exists', value: null })
  },

  'lets one of many simultaneous settings win': async (t, bench) => {
    const results = await rivals(bench, 10, (store, index) => store.kv.setIfAbsent(key, index, 10_000))
    t.same(kinds(results), { set: 1, exists: 9 })
    const winner = results.findIndex(({ kind }) => kind === 'set')
    t.equal(await bench.peer.kv.get(key), winner)
    const changed = await rivals(bench, 10, (store, index) => store.kv.compareAndSet(key, winner, 100 + index, 10_000))
    t.same(kinds(changed), { set: 1, differs: 9 })
    t.equal(await bench.peer.kv.get(key), 100 + changed.findIndex(({ kind }) => kind === 'set'))
  },

  'sets only over the expected value': async (t, { store, advance }) => {
    t.same(await store.kv.compareAndSet(key, 'x', 'y', 10_000), { kind: 'differs', value: undefined })
    t.same(await store.kv.compareAndSet(key, undefined, { a: [], b: 1 }, 10_000), { kind: 'set' })
    t.same(await store.kv.compareAndSet(key, undefined, 'y', 10_000), { kind: 'differs', value: { a: [], b: 1 } })
    t.same(await store.kv.compareAndSet(key, { a: [], b: 2 }, 'y', 10_000), { kind: 'differs', value: { a: [], b: 1 } })
    t.same(await store.kv.compareAndSet(key, await store.kv.get(key), 'y', 20_000), { kind: 'set' })
    await advance(15_000)
    t.equal(await store.kv.get(key), 'y')
    await advance(5_000)
    t.same(await store.kv.compareAndSet(key, 'y', 'z', 10_000), { kind: 'differs', value: undefined })
  },

  'keeps spaces and keys apart': async (t, { store }) => {
    const keys = [key, { ...key, space: 'k', key: 'dedupe' }, { ...key, key: 'dedupe:k' }, { ...key, space: 'dedupe:k', key: '' }, { ...key, space: '', key: 'dedupe:k' }]
    for (const [index, each] of keys.entries()) await store.kv.set(each, index, 10_000)
    for (const [index, each] of keys.entries()) t.equal(await store.kv.get(each), index)
  }
}
