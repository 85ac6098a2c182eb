import type { Owner, RunKey } from '../run-key.ts'
import type { Store } from '../store.ts'
import { aLease, anInterrupt, aRun, type Cases, events, LEASE_MS, paused, started } from './harness.ts'

const own: Owner = { tenant: 'acme', id: 'ann' }

/** Owners that a careless key would take for `own`, or that see more than they should. */
const foreign: readonly Owner[] = [
  {}, { id: 'ann' }, { tenant: 'acme' }, { tenant: 'ann', id: 'acme' }, { tenant: 'acme', id: '' }, { tenant: '', id: 'ann' }, { tenant: 'acme', id: 'bob' },
  { tenant: 'acme:ann' }, { id: 'acme:ann' }, { tenant: 'acme', id: 'ann ' }, { tenant: 'ACME', id: 'ann' }, { tenant: 'acme', id: 'null' }, { tenant: 'null', id: 'null' }
]

/** What every operation on a run key answers, by the operation. */
async function answers (store: Store, key: RunKey): Promise<Readonly<Record<string, unknown>>> {
  const expected = { version: 2, fence: 1, op: 'rival' }
  const claimant = { run: 'rival', fence: 9 }
  return {
    get: await store.runs.get(key),
    update: await store.runs.update(key, expected, { state: 'failed' }),
    commit: await store.runs.commit(key, expected, { patch: { state: 'failed' }, firstSeq: 3, events: events(3, 3), closeInterrupts: true }),
    append: await store.log.append(key, 1, 3, events(3, 3)),
    read: await store.log.read(key, 0, 10),
    saveFold: await store.log.saveFold(key, 1, { seq: 99, state: 'theirs' }),
    loadFold: await store.log.loadFold(key),
    acquire: await store.leases.acquire(key, aLease('rival')),
    takeover: await store.leases.takeover(key, aLease('rival')),
    renew: await store.leases.renew(key, 1, LEASE_MS * 100),
    release: await store.leases.release(key, 1),
    enter: await store.presence.enter(key, 'rival', LEASE_MS),
    leave: await store.presence.leave(key, 'node-a'),
    nodes: await store.presence.nodes(key),
    list: await store.interrupts.list(key),
    claim: await store.interrupts.claim(key, claimant, [{ id: 'i', decision: true }]),
    finish: await store.interrupts.finish(key, claimant, 'i', 'x'),
    giveBack: await store.interrupts.release(key, { run: 'answerer', fence: 1 }, ['claimed']),
    abandon: await store.interrupts.abandon(key, { run: 'answerer', fence: 9 }),
    delete: await store.runs.delete(key)
  }
}

/** One owner's things are to another as if they were not (invariant 9). */
export const ownerCases: Cases = {
  'answers every operation on a foreign run as on an unknown one, and changes nothing': async (t, { store, peer }) => {
    const record = await paused(store, [anInterrupt('i'), anInterrupt('claimed')], { key: { ...aRun().key, owner: own } })
    const { key } = record
    await store.log.append(key, 1, 1, events(1, 2))
    await store.log.saveFold(key, 1, { seq: 2, state: 'ours' })
    await store.presence.enter(key, 'node-a', LEASE_MS)
    await store.interrupts.claim(key, { run: 'answerer', fence: 1 }, [{ id: 'claimed', decision: 1 }])
    const seen = async () => [
      await store.runs.get(key), await store.log.read(key, 0, 10), await store.log.loadFold(key), await store.presence.nodes(key), await store.interrupts.list(key)
    ]
    const before = await seen()
    const unknown = await answers(peer, { ...key, id: 'unknown' })
    for (const owner of foreign) t.same(await answers(peer, { ...key, owner }), unknown, JSON.stringify(owner))
    t.same(await answers(peer, { ...key, protocol: 'other' }), unknown, 'another protocol')
    t.same(await seen(), before)
  },

  'lets the same ids be used by every owner, each with its own': async (t, { store, peer }) => {
    const owners = [own, ...foreign]
    const id = aRun().key.id
    for (const [index, owner] of owners.entries()) {
      await started(store, { key: { owner, protocol: 'fake', id }, fingerprint: `f${index}` })
      await store.kv.set({ owner, space: 's', key: 'k' }, index, LEASE_MS)
      await store.gates.enter(owner, 's', { id: 't', ms: LEASE_MS, data: index })
    }
    for (const [index, owner] of owners.entries()) {
      const key = { owner, protocol: 'fake', id }
      t.equal((await peer.runs.get(key))?.fingerprint, `f${index}`)
      t.same((await peer.index.list(owner, { limit: 100 })).runs.map(({ fingerprint }) => fingerprint), [`f${index}`])
      t.equal((await peer.index.last(owner, 'fake', 'session-1'))?.fingerprint, `f${index}`)
      t.equal((await peer.index.find(owner, 'fake', 'client-1'))?.fingerprint, `f${index}`)
      t.equal(await peer.kv.get({ owner, space: 's', key: 'k' }), index)
      t.same(await peer.gates.holder(owner, 's'), { id: 't', parked: false, data: index })
    }
  },

  'keeps sessions\' open interrupts, gates and values from other owners': async (t, { store }) => {
    const { session, key: { protocol } } = await paused(store, [anInterrupt('i')], { key: { ...aRun().key, owner: own } })
    const value = { space: 's', key: 'k' }
    await store.kv.set({ owner: own, ...value }, 'ours', LEASE_MS)
    await store.gates.enter(own, session, { id: 't', ms: LEASE_MS })
    for (const owner of foreign) {
      t.same(await store.interrupts.open(owner, protocol, session), [])
      t.same(await store.index.list(owner, { limit: 10 }), { runs: [] })
      t.equal(await store.kv.get({ owner, ...value }), undefined)
      t.same(await store.kv.compareAndSet({ owner, ...value }, 'ours', 'theirs', LEASE_MS), { kind: 'differs', value: undefined })
      await store.kv.delete({ owner, ...value })
      t.equal(await store.gates.holder(owner, session), undefined)
      t.same(await store.gates.renew(owner, session, 't', LEASE_MS), { kind: 'out' })
      t.equal(await store.gates.leave(owner, session, 't'), undefined)
    }
    t.equal((await store.interrupts.open(own, protocol, session)).length, 1)
    t.equal(await store.kv.get({ owner: own, ...value }), 'ours')
    t.same(await store.gates.holder(own, session), { id: 't', parked: false })
  }
}
