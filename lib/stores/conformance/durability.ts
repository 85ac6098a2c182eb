import { aLease, anInterrupt, type Cases, events, expect, LEASE_MS, paused, recordOf, started } from './harness.ts'

/** What a stopped and reopened store still knows: for backends that can reopen. */
export const durabilityCases: Cases = {
  'knows everything acknowledged after it was closed and opened again': async (t, { store, reopen }) => {
    if (reopen === undefined) return
    const record = await started(store)
    const { key } = record
    await store.log.append(key, 1, 1, events(1, 20), { maxEvents: 10 })
    await store.log.append(key, 1, 21, events(21, 25), { maxEvents: 10 })
    await store.log.saveFold(key, 1, { seq: 20, state: '{"list":[]}' })
    const waits = await paused(store, [anInterrupt('a'), anInterrupt('b')], { session: 'session-2' })
    await store.interrupts.claim(waits.key, { run: 'answerer', fence: 1 }, [{ id: 'b', decision: 1 }])
    await store.nodes.bind('node-a', waits.key)
    const kvKey = { owner: {}, space: 's', key: 'k' }
    await store.kv.set(kvKey, { list: [] }, 600_000)
    await store.gates.enter({}, 's', { id: 'parked', ms: undefined, data: 1 })
    await store.gates.enter({}, 's', { id: 'next', ms: 600_000 })
    const page = await store.log.read(key, 0, 100)
    const interrupts = await store.interrupts.list(waits.key)

    const again = await reopen()
    t.same(await again.runs.get(key), record)
    t.same(await again.runs.get(waits.key), waits)
    t.same(await again.log.read(key, 0, 100), page)
    t.same(await again.log.loadFold(key), { seq: 20, state: '{"list":[]}' })
    t.same(await again.interrupts.list(waits.key), interrupts)
    t.same((await again.interrupts.open(waits.key.owner, waits.key.protocol, 'session-2')).map(({ id }) => id), ['a'])
    t.same((await again.nodes.orphans({ protocols: ['fake'], limit: 10 })), [waits.key])
    t.same(await again.kv.get(kvKey), { list: [] })
    t.same(await again.gates.holder({}, 's'), { id: 'parked', parked: true, data: 1 })
    t.same(await again.gates.leave({}, 's', 'parked'), { id: 'next', parked: false })
    t.equal((await again.index.list(key.owner, { limit: 10 })).runs.length, 2)
    t.same(await again.log.append(key, 1, 21, events(21, 25)), { kind: 'ok', last: 25 }, 'a retry across the restart')
    t.same(await again.log.append(key, 1, 26, events(26, 26)), { kind: 'ok', last: 26 })
  },

  'keeps fences across a restart': async (t, { store, advance, reopen }) => {
    if (reopen === undefined) return
    const record = await started(store)
    const { key } = record
    const lost = await started(store)
    await advance(LEASE_MS)
    const taken = recordOf(await store.leases.takeover(key, aLease('node-b')))
    const again = await reopen()
    t.same(await again.log.append(key, 1, 1, events(1, 1)), { kind: 'fenced', fence: 2 })
    t.same(await again.leases.renew(key, 1, LEASE_MS), { kind: 'lost', fence: 2 })
    t.same(await again.leases.renew(key, 2, LEASE_MS), { kind: 'ok' })
    t.same(await again.leases.expired({ protocols: ['fake'], limit: 10 }), [lost.key])
    t.equal((await again.runs.update(key, expect(taken), { state: 'completed' })).kind, 'ok')
  }
}
