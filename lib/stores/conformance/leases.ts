import type { RunKey } from '../run-key.ts'
import { aLease, aRun, type Cases, events, expect, kinds, LEASE_MS, recordOf, rivals, started, unique, waiting } from './harness.ts'

const all = { protocols: ['fake'], limit: 100 }

function ids (keys: readonly RunKey[]): readonly string[] {
  return keys.map(({ id }) => id)
}

/** Ownership: leases, fences, takeover. */
export const leaseCases: Cases = {
  'holds a run for its owner until the lease runs out, and longer if it is renewed': async (t, { store, peer, advance }) => {
    const { key } = await started(store)
    await advance(6_000)
    t.same(await store.leases.renew(key, 1, LEASE_MS), { kind: 'ok' })
    await advance(6_000)
    t.same(await peer.leases.expired(all), [])
    const { expiresInMs, ...held } = await peer.leases.takeover(key, aLease('node-b')) as { expiresInMs: number }
    t.same(held, { kind: 'held', node: 'node-a', fence: 1 })
    t.equal(expiresInMs > 0 && expiresInMs <= 4_000, true)
    await advance(4_000)
    t.same(await peer.leases.expired(all), [key])
  },

  'lets an owner renew late as long as nobody took over': async (t, { store, peer, advance }) => {
    const { key } = await started(store)
    await advance(LEASE_MS * 3)
    t.same(await store.leases.renew(key, 1, LEASE_MS), { kind: 'ok' })
    t.same(await peer.leases.expired(all), [])
    t.equal((await peer.leases.takeover(key, aLease('node-b'))).kind, 'held')
  },

  'takes a run over once its lease ran out, and never before': async (t, { store, peer, advance }) => {
    const record = await started(store)
    const { key } = record
    await store.log.append(key, 1, 1, events(1, 4))
    await advance(LEASE_MS)
    const acquired = await peer.leases.acquire(key, aLease('node-b')) as { kind: string, expiresInMs: number }
    t.equal(acquired.kind, 'held', 'acquire ends nobody\'s lease')
    t.equal(acquired.expiresInMs <= 0, true)
    const taken = await peer.leases.takeover(key, aLease('node-b'))
    const { updatedAt, ...now } = recordOf(taken)
    const { updatedAt: before, ...was } = record
    t.equal(updatedAt >= before, true)
    t.same(now, { ...was, version: 2, fence: 2, node: 'node-b', lastSeq: 4, firstSeqByFence: [[1, 1], [2, 5]] })
    t.same(taken, { kind: 'taken', fence: 2, last: 4, record: recordOf(taken) })
    t.same(await store.runs.get(key), recordOf(taken))
    t.same(await store.leases.renew(key, 1, LEASE_MS), { kind: 'lost', fence: 2 })
    t.same(await peer.leases.renew(key, 2, LEASE_MS), { kind: 'ok' })
    t.same(await peer.leases.expired(all), [])
  },

  'gives the first answer again to a retry, and refuses another request of the same node': async (t, { store, peer, advance }) => {
    const { key } = await started(store)
    await advance(LEASE_MS)
    const request = aLease('node-b')
    const taken = await store.leases.takeover(key, request)
    t.same(await peer.leases.takeover(key, request), taken)
    t.equal((await peer.leases.takeover(key, aLease('node-b'))).kind, 'held')
    const idle = await waiting(store)
    const again = aLease('node-b')
    const acquired = await store.leases.acquire(idle.key, again)
    t.equal(acquired.kind, 'acquired')
    t.same(await peer.leases.acquire(idle.key, again), acquired)
    t.equal((await peer.leases.acquire(idle.key, aLease('node-b'))).kind, 'held')
  },

  'lets one of many simultaneous takeovers win': async (t, bench) => {
    const { key } = await started(bench.store)
    await bench.advance(LEASE_MS)
    const results = await rivals(bench, 8, (store, index) => store.leases.takeover(key, aLease(`node-${index}`)))
    t.same(kinds(results), { taken: 1, held: 7 })
    const winner = results.findIndex(({ kind }) => kind === 'taken')
    const record = await bench.peer.runs.get(key)
    t.same([record?.fence, record?.node, record?.version], [2, `node-${winner}`, 2])
  },

  'lets one of many simultaneous acquisitions of a waiting run win': async (t, bench) => {
    const { key } = await waiting(bench.store)
    const results = await rivals(bench, 8, (store, index) => store.leases.acquire(key, aLease(`node-${index}`)))
    t.same(kinds(results), { acquired: 1, held: 7 })
    t.equal((await bench.peer.runs.get(key))?.fence, 2)
  },

  'acquires a waiting run, which stays waiting until its owner says otherwise': async (t, { store, advance }) => {
    const record = await waiting(store)
    await advance(LEASE_MS * 10)
    t.same(await store.leases.expired(all), [], 'a waiting run has no lease')
    const acquired = await store.leases.acquire(record.key, aLease('node-b'))
    t.same([acquired.kind, recordOf(acquired).state, recordOf(acquired).fence, recordOf(acquired).node], ['acquired', 'waiting', 2, 'node-b'])
    await advance(LEASE_MS)
    t.same(await store.leases.expired(all), [record.key], 'its owner died before it went on')
    t.equal((await store.leases.takeover(record.key, aLease('node-c'))).kind, 'taken')
  },

  'takes over a run without a lease too': async (t, { store }) => {
    const { key } = await waiting(store)
    const taken = await store.leases.takeover(key, aLease('node-b'))
    t.same([taken.kind, recordOf(taken).fence], ['taken', 2])
  },

  'gives no lease of a run that ended, or is not there': async (t, { store }) => {
    const record = await started(store)
    const ended = recordOf(await store.runs.update(record.key, expect(record), { state: 'failed' }))
    const { key: unknown } = aRun()
    for (const take of ['acquire', 'takeover'] as const) {
      t.same(await store.leases[take](record.key, aLease()), { kind: 'ended', record: ended })
      t.same(await store.leases[take](unknown, aLease()), { kind: 'missing' })
    }
    t.same(await store.leases.renew(unknown, 1, LEASE_MS), { kind: 'lost', fence: 0 })
    await store.leases.release(unknown, 1)
    t.equal(await store.runs.get(unknown), undefined)
  },

  'lets a released run be taken over at once, and its former owner renew no more': async (t, { store, peer }) => {
    const { key } = await started(store)
    await store.leases.release(key, 2)
    t.same(await store.leases.renew(key, 1, LEASE_MS), { kind: 'ok' }, 'released by somebody else')
    await store.leases.release(key, 1)
    await store.leases.release(key, 1)
    t.same(await store.leases.renew(key, 1, LEASE_MS), { kind: 'lost', fence: 1 })
    t.same(await peer.leases.expired(all), [key])
    t.equal((await peer.leases.takeover(key, aLease('node-b'))).kind, 'taken')
    await store.leases.release(key, 1)
    t.same(await peer.leases.renew(key, 2, LEASE_MS), { kind: 'ok' })
  },

  'leaves a waiting run without a lease when its owner gives it back': async (t, { store, peer, advance }) => {
    const { key } = await waiting(store)
    await store.leases.release(key, 1)
    await store.leases.acquire(key, aLease('node-b'))
    for (let i = 0; i < 2; i++) await store.leases.release(key, 2)
    t.same(await store.leases.renew(key, 2, LEASE_MS), { kind: 'lost', fence: 2 })
    await advance(LEASE_MS)
    t.same(await peer.leases.expired(all), [])
    const acquired = await peer.leases.acquire(key, aLease('node-c'))
    t.same([acquired.kind, recordOf(acquired).fence], ['acquired', 3])
  },

  'lists expired leases by protocol, longest ago first, as many as asked for': async (t, { store, peer, advance }) => {
    const make = async (protocol: string, ms: number) => {
      const fields = { key: { owner: { id: 'ann' }, protocol, id: unique('run') } }
      return (await started(store, fields, { node: 'node-a', op: unique('op'), ms })).key
    }
    const [third, first, , second] = [await make('p', 9_000), await make('p', 2_000), await make('q', 1_000), await make('r', 5_000), await make('p', 60_000)]
    const deleted = await make('p', 1_000)
    await store.runs.delete(deleted)
    await advance(10_000)
    t.same(await peer.leases.expired({ protocols: ['p', 'r'], limit: 100 }), [first, second, third])
    t.same(ids(await peer.leases.expired({ protocols: ['p', 'r'], limit: 2 })), ids([first as RunKey, second as RunKey]))
    t.same(await peer.leases.expired({ protocols: [], limit: 2 }), [])
    t.same(await peer.leases.expired({ protocols: ['none'], limit: 2 }), [])
  },

  'raises the fence with each change of hands and remembers where each began': async (t, { store, advance }) => {
    const { key } = await started(store)
    let last = 0
    for (let fence = 1; fence <= 5; fence++) {
      await store.log.append(key, fence, last + 1, events(last + 1, last + fence))
      last += fence
      await advance(LEASE_MS)
      const taken = await store.leases.takeover(key, aLease(`node-${fence}`))
      t.same([taken.kind, recordOf(taken).fence, 'last' in taken && taken.last], ['taken', fence + 1, last])
    }
    t.same((await store.runs.get(key))?.firstSeqByFence, [[1, 1], [2, 2], [3, 4], [4, 7], [5, 11], [6, 16]])
  }
}
