import { aLease, anInterrupt, aRun, type Cases, events, expect, kinds, LEASE_MS, recordOf, rivals, started, unique, waiting } from './harness.ts'

/** Records: create, read, compare-and-set, expiry. */
export const runCases: Cases = {
  'creates a run with what was given and what is the store\'s': async (t, { store }) => {
    const run = aRun({
      fingerprint: 'f',
      links: { resumes: 'earlier' },
      trace: '00-trace',
      bytes: 7,
      input: [1, { deep: [null, true, 'x'] }],
      // Values that a careless encoder confuses: empty lists with empty objects, large numbers, `__proto__` as a name.
      detail: JSON.parse('{"list":[],"object":{},"nested":[[],{}],"nothing":null,"large":9007199254740991,"small":1e-9,"text":"\\ud83d\\u2028","__proto__":{"x":1}}')
    })
    const result = await store.runs.create(run, aLease('node-7'))
    const { updatedAt, ...record } = result.record
    t.equal(result.kind, 'created')
    t.equal(typeof updatedAt, 'number')
    t.same(record, { ...run, version: 1, fence: 1, node: 'node-7', lastSeq: 0, firstSeqByFence: [[1, 1]] })
    t.equal(JSON.stringify((await store.runs.get(run.key))?.detail), JSON.stringify(run.detail))
    t.same(await store.runs.get(run.key), result.record)
  },

  'answers nothing for a run that is not there, and makes nothing by asking': async (t, { store }) => {
    const { key } = aRun()
    t.equal(await store.runs.get(key), undefined)
    t.same(await store.runs.update(key, { version: 1, fence: 1, op: 'x' }, { state: 'failed' }), { kind: 'missing' })
    t.same(await store.runs.commit(key, { version: 1, fence: 1, op: 'x' }, { patch: {}, firstSeq: 1, events: events(1, 2) }), { kind: 'missing' })
    await store.runs.delete(key)
    t.equal(await store.runs.get(key), undefined)
    t.equal(await store.log.read(key, 0, 10), undefined)
  },

  'creates a key once, and answers a retry of the same request as the first time': async (t, { store }) => {
    const run = aRun()
    const lease = aLease()
    const first = await store.runs.create(run, lease)
    t.same(await store.runs.create(run, lease), first)
    t.same(await store.runs.create({ ...run, epoch: 'other' }, aLease()), { kind: 'exists', record: first.record })
    await store.runs.update(run.key, expect(first.record), { fingerprint: 'later' })
    const late = await store.runs.create(run, lease)
    t.same([late.kind, late.record.fingerprint], ['created', 'later'])
  },

  'lets one of many simultaneous creations win': async (t, bench) => {
    const run = aRun()
    const results = await rivals(bench, 8, (store, index) => store.runs.create({ ...run, epoch: `epoch-${index}` }, aLease(`node-${index}`)))
    t.same(kinds(results), { created: 1, exists: 7 })
    t.equal(new Set(results.map(({ record }) => `${record.epoch} ${record.node}`)).size, 1)
  },

  'replaces the named fields whole, removes those named undefined, keeps the others': async (t, { store }) => {
    const record = await started(store, { fingerprint: 'f', input: 'in', detail: { a: 1, b: [] }, links: { resumes: 'r' } })
    const result = await store.runs.update(record.key, expect(record), { detail: { c: {} }, fingerprint: undefined, links: { resumedBy: 's' }, bytes: 12 })
    const { fingerprint, updatedAt, ...rest } = record
    const { updatedAt: changedAt, ...changed } = recordOf(result)
    t.same([result.kind, changed], ['ok', { ...rest, version: 2, detail: { c: {} }, links: { resumedBy: 's' }, bytes: 12 }])
    t.equal(changedAt >= updatedAt, true)
    t.equal('fingerprint' in changed, false)
    t.same(await store.runs.get(record.key), recordOf(result))
  },

  'refuses a change that expects another version or fence, and shows the record as it is': async (t, { store }) => {
    const record = await started(store)
    const current = recordOf(await store.runs.update(record.key, expect(record), { fingerprint: 'new' }))
    for (const expected of [expect(record), { version: 3, fence: 1 }, { version: 2, fence: 0 }, { version: 2, fence: 2 }, { version: 0 }]) {
      t.same(await store.runs.update(record.key, expected, { state: 'failed' }), { kind: 'stale', record: current })
    }
    t.equal((await store.runs.update(record.key, { version: 2, op: unique('op') }, {})).kind, 'ok', 'the fence may be left out')
  },

  'answers a retry of the last change with ok, of an earlier one with stale': async (t, { store }) => {
    const record = await started(store)
    const expected = expect(record)
    const first = await store.runs.update(record.key, expected, { fingerprint: '1' })
    t.same(await store.runs.update(record.key, expected, { fingerprint: '1' }), first)
    const second = await store.runs.update(record.key, expect(recordOf(first)), { fingerprint: '2' })
    t.same(await store.runs.update(record.key, expected, { fingerprint: '1' }), { kind: 'stale', record: recordOf(second) })
    t.equal((await store.runs.get(record.key))?.version, 3)
  },

  'lets one of many simultaneous changes win': async (t, bench) => {
    const record = await started(bench.store)
    const results = await rivals(bench, 8, (store, index) => store.runs.update(record.key, expect(record), { fingerprint: `f${index}` }))
    t.same(kinds(results), { ok: 1, stale: 7 })
    const winner = results.findIndex(({ kind }) => kind === 'ok')
    const now = await bench.peer.runs.get(record.key)
    t.same([now?.version, now?.fingerprint], [2, `f${winner}`])
  },

  'never changes how a run ended, but still links it and sets its time to go': async (t, { store }) => {
    for (const state of ['completed', 'failed', 'cancelled', 'lost'] as const) {
      const record = await started(store)
      const end = { state, endedAt: 5_000, end: { kind: state, code: 'C', message: 'm' } }
      const ended = recordOf(await store.runs.update(record.key, expect(record), end))
      for (const patch of [{ state: 'running' }, { state }, { end: { kind: 'other' } }, { endedAt: 1 }, { end: undefined }] as const) {
        t.same(await store.runs.update(record.key, expect(ended), patch), { kind: 'stale', record: ended })
      }
      const linked = recordOf(await store.runs.update(record.key, expect(ended), { links: { resumedBy: 'next' } }))
      t.same([linked.state, linked.end, linked.endedAt, linked.links], [state, end.end, 5_000, { resumedBy: 'next' }])
    }
  },

  'ends the lease in the step that makes a run wait or end': async (t, { store, advance }) => {
    const idle = await waiting(store)
    const ended = await started(store)
    await store.runs.update(ended.key, expect(ended), { state: 'failed' })
    const going = await started(store, { state: 'pending' })
    const running = recordOf(await store.runs.update(going.key, expect(going), { state: 'running' }))
    t.same(await store.leases.renew(idle.key, 1, LEASE_MS), { kind: 'lost', fence: 1 })
    t.same(await store.leases.renew(ended.key, 1, LEASE_MS), { kind: 'lost', fence: 1 })
    t.same(await store.leases.renew(running.key, 1, LEASE_MS), { kind: 'ok' })
    await advance(LEASE_MS)
    t.same(await store.leases.expired({ protocols: ['fake'], limit: 10 }), [going.key])
  },

  'keeps the lease when a change does not name the state': async (t, { store }) => {
    const record = await waiting(store)
    const taken = await store.leases.acquire(record.key, aLease())
    const current = recordOf(taken)
    await store.runs.update(record.key, expect(current), { detail: { x: 1 } })
    t.same(await store.leases.renew(record.key, 2, LEASE_MS), { kind: 'ok' })
  },

  'gives away nothing that a caller could change the store by': async (t, { store }) => {
    const run = aRun({ detail: { list: [1] } })
    const given = structuredClone(run)
    const { record } = await store.runs.create(given, aLease())
    for (const value of [given, record, await store.runs.get(run.key)]) {
      try {
        const changed = value as unknown as { session: string, detail: { list: number[] } } // what TypeScript forbids and JavaScript may do
        changed.detail.list.push(2)
        changed.session = 'changed'
      } catch (error) {
        t.equal(error instanceof TypeError, true, 'frozen')
      }
    }
    const now = await store.runs.get(run.key)
    t.same([now?.session, now?.detail], [run.session, { list: [1] }])
  },

  'forgets everything of a run at its time, as one': async (t, { store, advance }) => {
    const record = await started(store)
    const { key } = record
    const expiresAt = record.updatedAt + 60_000
    const paused = recordOf(await store.runs.commit(key, expect(record), {
      patch: { state: 'completed', expiresAt },
      firstSeq: 1,
      events: events(1, 3),
      fold: { seq: 3, state: 's' },
      interrupts: [anInterrupt('i')]
    }))
    await advance(50_000)
    t.same(await store.runs.get(key), paused)
    t.same((await store.log.read(key, 0, 10))?.events, events(1, 3))
    await advance(11_000)
    t.equal(await store.runs.get(key), undefined)
    t.equal(await store.log.read(key, 0, 10), undefined)
    t.equal(await store.log.loadFold(key), undefined)
    t.same(await store.interrupts.list(key), [])
    t.same(await store.interrupts.open(key.owner, key.protocol, record.session), [])
    t.same(await store.index.list(key.owner, { limit: 10 }), { runs: [] })
    t.same(await store.log.append(key, 1, 4, events(4, 4)), { kind: 'gone' })
    t.same(await store.log.append(key, 1, 1, events(1, 1)), { kind: 'gone' })
    t.same(await store.log.saveFold(key, 1, { seq: 4, state: 's' }), { kind: 'gone' })
    t.same(await store.runs.update(key, expect(paused), {}), { kind: 'missing' })
    t.equal(await store.runs.get(key), undefined, 'a late owner brings nothing back')
  },

  'deletes everything of a run, again and again, and a late owner brings nothing back': async (t, { store }) => {
    const record = await started(store)
    const { key } = record
    await store.runs.commit(key, expect(record), {
      patch: { state: 'waiting' }, firstSeq: 1, events: events(1, 3), interrupts: [anInterrupt('i')]
    })
    await store.runs.delete(key)
    await store.runs.delete(key)
    t.equal(await store.runs.get(key), undefined)
    t.same(await store.log.append(key, 1, 4, events(4, 4)), { kind: 'gone' })
    t.same(await store.leases.renew(key, 1, LEASE_MS), { kind: 'lost', fence: 0 })
    await store.leases.release(key, 1)
    await store.presence.enter(key, 'node-a', LEASE_MS)
    t.same(await store.presence.nodes(key), [])
    t.same(await store.interrupts.open(key.owner, key.protocol, record.session), [])
    t.same(await store.index.list(key.owner, { limit: 10 }), { runs: [] })
    t.equal(await store.log.read(key, 0, 10), undefined)
    const again = await started(store, { key })
    t.same([again.version, again.fence, await store.log.read(key, 0, 10)], [1, 1, { oldest: 1, last: 0, events: [] }])
    t.same(await store.interrupts.list(key), [])
  }
}
