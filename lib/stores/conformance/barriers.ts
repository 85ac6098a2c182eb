import { anInterrupt, type Cases, events, expect, kinds, LEASE_MS, paused, recordOf, rivals, started, unique } from './harness.ts'

/** The barrier of R3: record, events, interrupts and fold as one. */
export const barrierCases: Cases = {
  'writes record, events, interrupts and fold together, and ends the lease': async (t, { store, peer }) => {
    const record = await started(store)
    const { key, session } = record
    await store.log.append(key, 1, 1, events(1, 2))
    const result = await store.runs.commit(key, expect(record), {
      patch: { state: 'waiting', input: { resume: [] } },
      firstSeq: 3,
      events: events(3, 4),
      interrupts: [anInterrupt('i-1'), anInterrupt('i-2', { kind: 'external', expiresAt: record.updatedAt + 3_600_000 })],
      fold: { seq: 4, state: '{"blocks":[]}' }
    })
    const { updatedAt, ...rest } = record
    const { updatedAt: changedAt, ...written } = recordOf(result)
    t.same([result.kind, typeof changedAt], ['ok', 'number'])
    t.same(written, { ...rest, version: 2, state: 'waiting', input: { resume: [] }, lastSeq: 4 })
    t.same(await peer.log.read(key, 0, 10), { oldest: 1, last: 4, events: events(1, 4) })
    t.same(await peer.log.loadFold(key), { seq: 4, state: '{"blocks":[]}' })
    t.same(await peer.interrupts.list(key), [
      { ...anInterrupt('i-1'), run: key, session, state: 'open' },
      { ...anInterrupt('i-2', { kind: 'external', expiresAt: record.updatedAt + 3_600_000 }), run: key, session, state: 'open' }
    ])
    t.same(await store.leases.renew(key, 1, LEASE_MS), { kind: 'lost', fence: 1 })
  },

  'answers a retry as the first time and writes nothing twice': async (t, { store, peer }) => {
    const record = await started(store)
    const expected = expect(record)
    const barrier = { patch: { state: 'waiting' }, firstSeq: 1, events: events(1, 3), interrupts: [anInterrupt('i')] } as const
    const first = await store.runs.commit(record.key, expected, barrier)
    t.same(await peer.runs.commit(record.key, expected, barrier), first)
    t.same(await store.log.read(record.key, 0, 10), { oldest: 1, last: 3, events: events(1, 3) })
    t.equal((await store.interrupts.list(record.key)).length, 1)
  },

  'writes nothing at all where version or fence differ': async (t, { store }) => {
    const record = await started(store)
    for (const expected of [{ ...expect(record), version: 2 }, { ...expect(record), fence: 2 }]) {
      const result = await store.runs.commit(record.key, expected, {
        patch: { state: 'waiting' }, firstSeq: 1, events: events(1, 1), interrupts: [anInterrupt('i')], fold: { seq: 1, state: '1' }
      })
      t.same(result, { kind: 'stale', record })
    }
    t.same(await store.runs.get(record.key), record)
    t.same(await store.log.read(record.key, 0, 10), { oldest: 1, last: 0, events: [] })
    t.same(await store.interrupts.list(record.key), [])
    t.equal(await store.log.loadFold(record.key), undefined)
    t.same(await store.leases.renew(record.key, 1, LEASE_MS), { kind: 'ok' })
  },

  'writes nothing at all where the events do not continue the log, and says where it ends': async (t, { store }) => {
    const record = await started(store)
    await store.log.append(record.key, 1, 1, events(1, 2))
    for (const [first, last] of [[4, 5], [2, 3], [9, 9]] as const) {
      const result = await store.runs.commit(record.key, expect(record), {
        patch: { state: 'failed' }, firstSeq: first, events: events(first, last), interrupts: [anInterrupt('i')], fold: { seq: 1, state: '1' }
      })
      t.same(result, { kind: 'misplaced', last: 2, record })
    }
    t.same(await store.runs.get(record.key), record)
    t.same(await store.interrupts.list(record.key), [])
    t.equal(await store.log.loadFold(record.key), undefined)
  },

  'takes a barrier without events, and one whose events are in the log already': async (t, { store }) => {
    const record = await started(store)
    await store.log.append(record.key, 1, 1, events(1, 2))
    const first = recordOf(await store.runs.commit(record.key, expect(record), { patch: {}, firstSeq: 3, events: [] }))
    const second = recordOf(await store.runs.commit(record.key, expect(first), { patch: { state: 'completed' }, firstSeq: 2, events: events(2, 2) }))
    t.same([first.lastSeq, first.version, second.lastSeq, second.version, second.state], [2, 2, 2, 3, 'completed'])
    t.same(await store.log.read(record.key, 0, 10), { oldest: 1, last: 2, events: events(1, 2) })
  },

  'lets one of many simultaneous barriers win, whole': async (t, bench) => {
    const record = await started(bench.store)
    const results = await rivals(bench, 6, (store, index) => store.runs.commit(record.key, expect(record), {
      patch: { state: 'waiting', fingerprint: `f${index}` }, firstSeq: 1, events: events(1, 2, `w${index}`), interrupts: [anInterrupt(`i${index}`)]
    }))
    t.same(kinds(results), { ok: 1, stale: 5 })
    const winner = results.findIndex(({ kind }) => kind === 'ok')
    t.equal((await bench.peer.runs.get(record.key))?.fingerprint, `f${winner}`)
    t.same((await bench.peer.log.read(record.key, 0, 10))?.events, events(1, 2, `w${winner}`))
    t.same((await bench.peer.interrupts.list(record.key)).map(({ id }) => id), [`i${winner}`])
  },

  'does not end a run a second time, whatever the version': async (t, { store }) => {
    const record = await started(store)
    const ended = recordOf(await store.runs.commit(record.key, expect(record), { patch: { state: 'completed' }, firstSeq: 1, events: events(1, 1) }))
    t.same(
      await store.runs.commit(record.key, expect(ended), { patch: { state: 'failed' }, firstSeq: 2, events: events(2, 2) }),
      { kind: 'stale', record: ended })
    t.same((await store.log.read(record.key, 0, 10))?.events, events(1, 1))
  },

  'is refused to an owner that was taken over, even if it knows the version': async (t, { store, peer, advance }) => {
    const record = await started(store)
    await advance(LEASE_MS)
    const taken = recordOf(await peer.leases.takeover(record.key, { node: 'node-b', op: unique('op'), ms: LEASE_MS }))
    const late = await store.runs.commit(record.key, { version: taken.version, fence: 1, op: unique('op') }, {
      patch: { state: 'completed' }, firstSeq: 1, events: events(1, 1)
    })
    t.same(late, { kind: 'stale', record: taken })
    t.same((await store.log.read(record.key, 0, 10))?.events, [])
  },

  'closes what nobody answered, before it opens anew': async (t, { store }) => {
    const record = await paused(store, [anInterrupt('a'), anInterrupt('b')])
    await store.interrupts.claim(record.key, { run: 'answerer', fence: 1 }, [{ id: 'a', decision: true }])
    const result = await store.runs.commit(record.key, expect(record), {
      patch: {}, firstSeq: 1, events: [], closeInterrupts: true, interrupts: [anInterrupt('b', { kind: 'input' }), anInterrupt('c')]
    })
    t.equal(result.kind, 'ok')
    t.same((await store.interrupts.list(record.key)).map(({ id, kind, state }) => [id, kind, state]), [
      ['a', 'confirm', 'claimed'], ['b', 'input', 'open'], ['c', 'confirm', 'open']
    ])
    const ended = await store.runs.commit(record.key, expect(recordOf(result)), {
      patch: { state: 'cancelled' }, firstSeq: 1, events: [], closeInterrupts: true
    })
    t.equal(ended.kind, 'ok')
    t.same((await store.interrupts.list(record.key)).map(({ id, state }) => [id, state]), [['a', 'claimed'], ['b', 'closed'], ['c', 'closed']])
    t.same(await store.interrupts.open(record.key.owner, record.key.protocol, record.session), [])
  },

  'replaces an interrupt that is over, never one that somebody may be acting on': async (t, { store }) => {
    const record = await paused(store, [anInterrupt('done'), anInterrupt('claimed'), anInterrupt('unknown')])
    const { key } = record
    const claimant = { run: 'answerer', fence: 1 }
    await store.interrupts.claim(key, claimant, [{ id: 'done', decision: 1 }, { id: 'unknown', decision: 1 }])
    await store.interrupts.finish(key, claimant, 'done', 'yes')
    await store.interrupts.abandon(key, { run: 'answerer', fence: 2 })
    await store.interrupts.claim(key, { run: 'other', fence: 1 }, [{ id: 'claimed', decision: 1 }])
    for (const id of ['claimed', 'unknown']) {
      const result = await store.runs.commit(key, expect(record), {
        patch: { fingerprint: 'x' }, firstSeq: 1, events: events(1, 1), interrupts: [anInterrupt('new'), anInterrupt(id)]
      })
      t.same(result, { kind: 'stale', record })
    }
    t.equal((await store.interrupts.list(key)).length, 3)
    const result = await store.runs.commit(key, expect(record), { patch: {}, firstSeq: 1, events: [], interrupts: [anInterrupt('done')] })
    t.equal(result.kind, 'ok')
    t.same((await store.interrupts.list(key)).map(({ id, state, decision, outcome }) => [id, state, decision, outcome]), [
      ['claimed', 'claimed', 1, undefined], ['unknown', 'unknown', 1, undefined], ['done', 'open', undefined, undefined]
    ])
  }
}
