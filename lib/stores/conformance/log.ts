import type { LogEvent, LogPage } from '../event-log.ts'
import { aLease, aRun, type Cases, events, expect, LEASE_MS, recordOf, started } from './harness.ts'

/** The log: order, retries, fencing, trimming, reading. */
export const logCases: Cases = {
  'returns events as they were appended': async (t, { store, peer }) => {
    const { key } = await started(store)
    t.same(await peer.log.read(key, 0, 10), { oldest: 1, last: 0, events: [] })
    const appended: readonly LogEvent[] = [
      { seq: 1, event: 'message', data: 'plain\nlines\r\nand \u0000 \u2028 \u{1f600}', level: 2 },
      { seq: 2, data: '' },
      { seq: 3, event: '', data: '{"a":[],"b":{}}', level: 0 },
      { seq: 4, data: 'x'.repeat(1_048_576) }
    ]
    t.same(await store.log.append(key, 1, 1, appended.slice(0, 1)), { kind: 'ok', last: 1 })
    t.same(await store.log.append(key, 1, 2, appended.slice(1)), { kind: 'ok', last: 4 })
    t.same(await peer.log.read(key, 0, 10), { oldest: 1, last: 4, events: appended })
  },

  'reads from any cursor in pages of any size, across appends of any size': async (t, { store, peer }) => {
    const { key } = await started(store)
    const sizes = [1, 7, 2, 16, 1, 3]
    let last = 0
    for (const size of sizes) {
      await store.log.append(key, 1, last + 1, events(last + 1, last + size))
      last += size
    }
    for (const limit of [1, 2, 5, 30, 100]) {
      for (const after of [0, 1, 7, 8, 9, 25, 29, 30]) {
        const found: LogEvent[] = []
        for (let page = await peer.log.read(key, after, limit); page !== undefined && page.events.length > 0;) {
          found.push(...page.events)
          t.equal(page.events.length <= limit, true)
          page = await peer.log.read(key, after + found.length, limit)
        }
        t.same(found, events(after + 1, 30))
      }
    }
    t.same(await peer.log.read(key, 31, 10), { oldest: 1, last: 30, events: [] }, 'ahead of the head')
    t.same(await peer.log.read(key, -5, 2), { oldest: 1, last: 30, events: events(1, 2) })
  },

  'takes appends issued without waiting, in order': async (t, { store, inOrder }) => {
    if (inOrder === false) return
    const { key } = await started(store)
    const results = await Promise.all(Array.from({ length: 50 }, (_, i) => store.log.append(key, 1, i * 3 + 1, events(i * 3 + 1, i * 3 + 3))))
    t.same(new Set(results.map(({ kind }) => kind)), new Set(['ok']))
    t.same((await store.log.read(key, 0, 1_000))?.events, events(1, 150))
  },

  'takes a repeated append for done, also an earlier one and one packed otherwise': async (t, { store, peer }) => {
    const { key } = await started(store)
    for (const [first, last] of [[1, 2], [3, 5], [6, 6]] as const) await store.log.append(key, 1, first, events(first, last))
    for (const [first, last] of [[6, 6], [3, 5], [1, 2], [2, 4], [1, 6]] as const) {
      t.same(await peer.log.append(key, 1, first, events(first, last)), { kind: 'ok', last: 6 })
    }
    t.same(await store.log.append(key, 1, 7, []), { kind: 'ok', last: 6 }, 'nothing to append')
    t.same(await store.log.read(key, 0, 10), { oldest: 1, last: 6, events: events(1, 6) })
  },

  'refuses a hole and a partial overlap, and says where to go on': async (t, { store }) => {
    const { key } = await started(store)
    t.same(await store.log.append(key, 1, 2, events(2, 3)), { kind: 'misplaced', last: 0 })
    await store.log.append(key, 1, 1, events(1, 4))
    for (const [first, last] of [[6, 6], [3, 6], [40, 50]] as const) {
      t.same(await store.log.append(key, 1, first, events(first, last)), { kind: 'misplaced', last: 4 })
    }
    t.same(await store.log.append(key, 1, 5, events(5, 6)), { kind: 'ok', last: 6 })
    t.same(await store.log.read(key, 0, 10), { oldest: 1, last: 6, events: events(1, 6) })
  },

  'refuses every append of an owner that was taken over, also the repetition of a good one': async (t, { store, peer, advance }) => {
    const { key } = await started(store)
    await store.log.append(key, 1, 1, events(1, 3))
    await advance(LEASE_MS)
    const taken = await peer.leases.takeover(key, aLease('node-b'))
    t.same([taken.kind, 'last' in taken && taken.last], ['taken', 3])
    for (const [first, last] of [[4, 5], [3, 3], [1, 3], [9, 9]] as const) {
      t.same(await store.log.append(key, 1, first, events(first, last, 'late')), { kind: 'fenced', fence: 2 }, 'before the new owner wrote')
    }
    t.same(await store.log.saveFold(key, 1, { seq: 3, state: 'late' }), { kind: 'fenced', fence: 2 })
    t.same(await peer.log.append(key, 2, 4, events(4, 4, 'b')), { kind: 'ok', last: 4 })
    t.same(await store.log.append(key, 1, 4, events(4, 4, 'late')), { kind: 'fenced', fence: 2 })
    t.same(await store.log.read(key, 0, 10), { oldest: 1, last: 4, events: [...events(1, 3), ...events(4, 4, 'b')] })
    t.equal(await store.log.loadFold(key), undefined)
  },

  'refuses the first append of an owner that was taken over before it': async (t, { store, peer, advance }) => {
    const { key } = await started(store)
    await advance(LEASE_MS)
    await peer.leases.takeover(key, aLease('node-b'))
    t.same(await store.log.append(key, 1, 1, events(1, 1, 'late')), { kind: 'fenced', fence: 2 })
    t.same(await peer.log.append(key, 2, 1, events(1, 1, 'b')), { kind: 'ok', last: 1 })
    t.same((await store.log.read(key, 0, 10))?.events, events(1, 1, 'b'))
  },

  'lets a new owner number on, never over what is there, and tells who wrote what': async (t, { store }) => {
    const first = await started(store)
    const { key } = first
    await store.log.append(key, 1, 1, events(1, 3))
    const idle = recordOf(await store.runs.update(key, expect(first), { state: 'waiting' }))
    const silent = await store.leases.acquire(key, aLease('node-b'))
    await store.runs.update(key, expect(recordOf(silent)), { state: 'waiting' })
    const third = await store.leases.acquire(key, aLease('node-c'))
    t.same([idle.fence, recordOf(silent).fence, recordOf(third).fence], [1, 2, 3])
    t.same(await store.log.append(key, 3, 2, events(2, 3, 'c')), { kind: 'misplaced', last: 3 })
    t.same(await store.log.append(key, 3, 3, events(3, 4, 'c')), { kind: 'misplaced', last: 3 })
    t.same(await store.log.append(key, 3, 4, events(4, 6, 'c')), { kind: 'ok', last: 6 })
    t.same(await store.log.append(key, 3, 4, events(4, 6, 'c')), { kind: 'ok', last: 6 })
    const record = await store.runs.get(key)
    const ownerOf = (seq: number) => record?.firstSeqByFence.filter(([, firstSeq]) => firstSeq <= seq).at(-1)?.[0]
    t.same([1, 3, 4, 6].map(ownerOf), [1, 1, 3, 3])
    t.same(await store.log.read(key, 2, 10), { oldest: 1, last: 6, events: [...events(3, 3), ...events(4, 6, 'c')] })
  },

  'knows no log without its run': async (t, { store }) => {
    const { key } = aRun()
    t.same(await store.log.append(key, 1, 1, events(1, 1)), { kind: 'gone' })
    t.same(await store.log.append(key, 1, 5, events(5, 6)), { kind: 'gone' })
    t.same(await store.log.saveFold(key, 1, { seq: 1, state: '1' }), { kind: 'gone' })
    t.equal(await store.log.loadFold(key), undefined)
    t.equal(await store.log.read(key, 0, 10), undefined)
    t.equal(await store.runs.get(key), undefined)
  },

  'shows the real edge of a trimmed log to cursors on either side of it': async (t, { store, peer }) => {
    const { key } = await started(store)
    for (let seq = 1; seq <= 40; seq++) await store.log.append(key, 1, seq, events(seq, seq), { maxEvents: 16 })
    const { oldest } = await peer.log.read(key, 0, 1) as LogPage
    t.equal(oldest >= 2 && oldest <= 25, true, 'trimmed, and the newest 16 kept')
    for (const after of [0, oldest - 2, oldest - 1, oldest, 23, 24, 25, 39, 40, 41]) {
      const from = Math.max(after + 1, oldest)
      t.same(await peer.log.read(key, after, 100), { oldest, last: 40, events: events(from, 40) })
    }
  },

  'trims within bounds, whole appends at a time, and never the newest': async (t, { store }) => {
    const { key } = await started(store)
    let last = 0
    for (let i = 0; i < 60; i++) {
      const size = 1 + i * 7 % 5
      await store.log.append(key, 1, last + 1, events(last + 1, last + size), { maxEvents: 10 })
      last += size
      const page = await store.log.read(key, 0, 1_000) as LogPage
      t.equal(page.last, last)
      t.equal(page.events.length >= Math.min(10, last) && page.events.length <= 2 * 10 + 5, true, 'at least 10, at most about twice as many')
      t.same(page.events, events(page.oldest, last))
    }
    await store.log.append(key, 1, last + 1, events(last + 1, last + 100), { maxEvents: 1, maxBytes: 1 })
    t.same(await store.log.read(key, 0, 1_000), { oldest: last + 1, last: last + 100, events: events(last + 1, last + 100) })
    t.same(await store.log.append(key, 1, last + 1, events(last + 1, last + 100)), { kind: 'ok', last: last + 100 }, 'a retry after trimming')
  },

  'keeps about as many bytes as asked': async (t, { store }) => {
    const { key } = await started(store)
    for (let seq = 1; seq <= 40; seq++) {
      await store.log.append(key, 1, seq, [{ seq, data: 'x'.repeat(1_000) }], { maxBytes: 10_000, maxEvents: 1_000 })
    }
    const page = await store.log.read(key, 0, 100) as LogPage
    t.equal(page.events.length >= 5 && page.events.length <= 21, true)
    t.same([page.last, page.oldest], [40, 41 - page.events.length])
  },

  'trims nothing that the stored fold does not cover': async (t, { store }) => {
    const { key } = await started(store)
    for (let seq = 1; seq <= 20; seq++) await store.log.append(key, 1, seq, events(seq, seq), { maxEvents: 2, maxBytes: 10, floor: 5 })
    const page = await store.log.read(key, 0, 100) as LogPage
    t.equal(page.oldest <= 6, true)
    t.same(page.events, events(page.oldest, 20))
    await store.log.append(key, 1, 21, events(21, 21), { maxEvents: 2, floor: 0 })
    t.equal((await store.log.read(key, 0, 1))?.oldest, page.oldest)
  },

  'trims in a barrier as in an append': async (t, { store }) => {
    const record = await started(store)
    for (let seq = 1; seq <= 40; seq++) await store.log.append(record.key, 1, seq, events(seq, seq))
    await store.runs.commit(record.key, expect(record), { patch: {}, firstSeq: 41, events: events(41, 44), limits: { maxEvents: 4, maxBytes: 1 } })
    t.same(await store.log.read(record.key, 0, 100), { oldest: 41, last: 44, events: events(41, 44) })
  },

  'gives every reader each event once and in order while the log grows': async (t, bench) => {
    const { key } = await started(bench.store)
    const total = 100
    const follow = async (start: number, limit: number): Promise<readonly LogEvent[]> => {
      const found: LogEvent[] = []
      for (let after = start; after < total;) {
        const page = await bench.peer.log.read(key, after, limit) as LogPage
        found.push(...page.events)
        after += page.events.length
        // Another turn: a store that answers in this one would never let the writer on.
        await new Promise((resolve) => setImmediate(resolve))
      }
      return found
    }
    const readers = Array.from({ length: 20 }, (_, index) => follow(index, 1 + index * 3))
    for (let seq = 1; seq <= total; seq += 2) {
      await bench.store.log.append(key, 1, seq, events(seq, seq + 1))
      await new Promise((resolve) => setImmediate(resolve))
    }
    for (const [index, found] of (await Promise.all(readers)).entries()) t.same(found, events(index + 1, total))
  },

  'keeps the latest fold, by sequence': async (t, { store, peer }) => {
    const { key } = await started(store)
    await store.log.append(key, 1, 1, events(1, 9))
    t.equal(await peer.log.loadFold(key), undefined)
    const state = JSON.stringify({ list: [], object: {}, text: '\u2028"\u00e9\u{1f600}', nested: [{ n: 1 }] })
    t.same(await store.log.saveFold(key, 1, { seq: 5, state }), { kind: 'ok' })
    t.same(await peer.log.loadFold(key), { seq: 5, state })
    t.same(await store.log.saveFold(key, 1, { seq: 3, state: 'earlier' }), { kind: 'ok' })
    t.same((await peer.log.loadFold(key))?.seq, 5)
    t.same(await store.log.saveFold(key, 1, { seq: 9, state: '\u2028"' }), { kind: 'ok' })
    t.same(await peer.log.loadFold(key), { seq: 9, state: '\u2028"' })
  },

  'holds a log of thousands': async (t, { store }) => {
    const { key } = await started(store)
    for (let seq = 1; seq <= 4_000; seq += 16) await store.log.append(key, 1, seq, events(seq, seq + 15))
    t.same((await store.log.read(key, 3_990, 100))?.events, events(3_991, 4_000))
    t.same((await store.log.read(key, 0, 5_000))?.events, events(1, 4_000))
  }
}
