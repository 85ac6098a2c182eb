import type { Store } from '../store.ts'
import { aLease, anInterrupt, type Cases, events, LEASE_MS, paused, started } from './harness.ts'

/** Ids that are special somewhere: in paths, keys, patterns, hash tags, prototypes, encodings. All different. */
const odd: readonly string[] = [
  '', ' ', '.', '..', '/', '//', 'a/b', ':', 'a:b', '::', '{tag}', '{', '}', '*', '?', '[a]', '\\', '|', '-', '0', '1', '01', '-1', 'null', 'undefined', '"', '["a"]', 'a"b', '%', '%2F',
  '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'a\u0000', 'a\u0000b', '\n', '\r\n', '\t', '\u0085', '\u2028', '\u00e9', 'e\u0301', '\u{1f600}', '\ud83d', '\ude00', '\ufffd', '\uffff',
  'ID', 'id', 'x'.repeat(2_000), `${'x'.repeat(1_999)}y`, '\u{1f600}'.repeat(1_000)
]

async function fill (store: Store): Promise<void> {
  for (const [index, id] of odd.entries()) {
    const record = await paused(store, [anInterrupt(id)], {
      key: { owner: { tenant: id, id }, protocol: id, id }, clientId: id, session: id, agent: id, epoch: id, fingerprint: `${index}`
    }, aLease(id))
    await store.log.append(record.key, 1, 1, [{ seq: 1, event: 'x', data: `${index}` }])
    await store.presence.enter(record.key, id, LEASE_MS)
    await store.nodes.bind(id, record.key)
    await store.kv.set({ owner: {}, space: id, key: id }, index, LEASE_MS)
    await store.kv.set({ owner: {}, space: 'one', key: id }, index, LEASE_MS)
    await store.gates.enter({}, id, { id, ms: LEASE_MS, data: index })
  }
}

/** Ids are opaque: any characters, any length a client may send. */
export const idCases: Cases = {
  'keeps things under odd ids apart, and returns the ids as they were': async (t, { store, peer }) => {
    await fill(store)
    for (const [index, id] of odd.entries()) {
      const owner = { tenant: id, id }
      const key = { owner, protocol: id, id }
      const record = await peer.runs.get(key)
      t.same([record?.key, record?.clientId, record?.session, record?.agent, record?.epoch, record?.fingerprint], [key, id, id, id, id, `${index}`])
      t.same((await peer.log.read(key, 0, 10))?.events, [{ seq: 1, event: 'x', data: `${index}` }])
      t.same(await peer.presence.nodes(key), [id])
      t.same((await peer.interrupts.open(owner, id, id)).map((interrupt) => [interrupt.id, interrupt.run]), [[id, key]])
      t.same(await peer.index.list(owner, { limit: 10, protocol: id, session: id, agent: id }), { runs: [record] })
      t.same(await peer.index.last(owner, id, id), record)
      t.same(await peer.index.find(owner, id, id), record)
      t.same(await peer.nodes.orphans({ protocols: [id], limit: 10 }), [key])
      t.equal(await peer.kv.get({ owner: {}, space: id, key: id }), index)
      t.equal(await peer.kv.get({ owner: {}, space: 'one', key: id }), index)
      t.same(await peer.gates.holder({}, id), { id, parked: false, data: index })
    }
  },

  'claims, finishes and queues under odd ids': async (t, { store }) => {
    const record = await paused(store, odd.map((id) => anInterrupt(id)))
    for (const id of odd) {
      const claimant = { run: id, fence: 1 }
      t.equal((await store.interrupts.claim(record.key, claimant, [{ id, decision: id }])).kind, 'claimed')
      const finished = await store.interrupts.finish(record.key, claimant, id, id)
      t.same('record' in finished && [finished.record.id, finished.record.decision, finished.record.outcome, finished.record.claim?.run], [id, id, id, id])
      await store.gates.enter({}, 'one', { id, ms: LEASE_MS })
    }
    for (const id of odd) {
      t.equal((await store.gates.holder({}, 'one'))?.id, id)
      await store.gates.leave({}, 'one', id)
    }
  },

  'pages through runs with odd ids': async (t, { store }) => {
    for (const id of odd) await started(store, { key: { owner: {}, protocol: 'p', id } })
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await store.index.list({}, { limit: 7, ...cursor !== undefined && { cursor } })
      found.push(...page.runs.map(({ key }) => key.id))
      cursor = page.cursor
    } while (cursor !== undefined)
    t.same(found.length, odd.length)
    t.same(new Set(found), new Set(odd))
    t.same((await store.log.read({ owner: {}, protocol: 'p', id: '__proto__' }, 0, 1)), { oldest: 1, last: 0, events: [] })
    t.same(await store.log.append({ owner: {}, protocol: 'p', id: '\ud83d' }, 1, 1, events(1, 1)), { kind: 'ok', last: 1 })
    t.equal((await store.log.read({ owner: {}, protocol: 'p', id: '\ude00' }, 0, 1))?.last, 0)
  }
}
