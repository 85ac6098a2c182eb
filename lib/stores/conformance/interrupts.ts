import type { InterruptRecord } from '../interrupts.ts'
import { aLease, anInterrupt, aRun, type Cases, expect, kinds, LEASE_MS, paused, recordOf, rivals, started } from './harness.ts'

const claimant = { run: 'answerer', fence: 3 }

function states (records: readonly InterruptRecord[]): readonly (readonly [string, string])[] {
  return records.map(({ id, state }) => [id, state] as const)
}

/** The records of a result that has them. */
function recordsOf (result: object): readonly InterruptRecord[] {
  return (result as { readonly records: readonly InterruptRecord[] }).records // a result without them fails the case
}

/** Approvals: claimed at most once, all or nothing, and never acted on twice (R21). */
export const interruptCases: Cases = {
  'claims open interrupts, keeping the decisions, and then records their outcomes': async (t, { store, peer }) => {
    const record = await paused(store, [anInterrupt('a'), anInterrupt('b'), anInterrupt('c')])
    const { key, session } = record
    const result = await store.interrupts.claim(key, claimant, [{ id: 'b', decision: { approved: true, edits: [] } }, { id: 'a', decision: null }])
    const base = { run: key, session, state: 'claimed' }
    const found = recordsOf(result).map(({ claim, ...rest }) => [rest, claim?.run, claim?.fence, typeof claim?.at])
    t.equal(result.kind, 'claimed')
    t.same(found, [
      [{ ...anInterrupt('b'), ...base, decision: { approved: true, edits: [] } }, 'answerer', 3, 'number'],
      [{ ...anInterrupt('a'), ...base, decision: null }, 'answerer', 3, 'number']
    ])
    t.same(states(await peer.interrupts.list(key)), [['a', 'claimed'], ['b', 'claimed'], ['c', 'open']])
    const finished = await store.interrupts.finish(key, claimant, 'b', { text: 'written', list: [] })
    t.same([finished.kind, 'record' in finished && [finished.record.state, finished.record.outcome]], ['ok', ['done', { text: 'written', list: [] }]])
    t.same(await peer.interrupts.finish(key, claimant, 'b', 'another'), finished, 'a retry changes nothing')
    t.same(states(await peer.interrupts.list(key)), [['a', 'claimed'], ['b', 'done'], ['c', 'open']])
  },

  'claims all or none': async (t, { store }) => {
    const { key } = await paused(store, [anInterrupt('a'), anInterrupt('b')])
    await store.interrupts.claim(key, { run: 'first', fence: 1 }, [{ id: 'a', decision: 'mine' }])
    const taken = await store.interrupts.claim(key, claimant, [{ id: 'b', decision: 1 }, { id: 'a', decision: 2 }])
    t.equal(taken.kind, 'taken')
    t.same(recordsOf(taken).map(({ id, state, decision }) => [id, state, decision]), [['b', 'open', undefined], ['a', 'claimed', 'mine']])
    t.same(await store.interrupts.claim(key, claimant, [{ id: 'b', decision: 1 }, { id: 'x', decision: 1 }, { id: 'y', decision: 1 }]), { kind: 'missing', ids: ['x', 'y'] })
    t.same(states(await store.interrupts.list(key)), [['a', 'claimed'], ['b', 'open']])
    t.same(await store.interrupts.claim(key, claimant, []), { kind: 'claimed', records: [] })
    t.same(await store.interrupts.claim(aRun().key, claimant, [{ id: 'a', decision: 1 }]), { kind: 'missing', ids: ['a'] })
    t.same(await store.interrupts.claim(aRun().key, claimant, []), { kind: 'missing', ids: [] })
  },

  'lets one of many simultaneous claims win, also where they overlap only in part': async (t, bench) => {
    const { key } = await paused(bench.store, [anInterrupt('a'), anInterrupt('b'), anInterrupt('c')])
    const other = (index: number): string => 'ac'.charAt(index % 2)
    const results = await rivals(bench, 9, (store, index) => store.interrupts.claim(key, { run: `run-${index}`, fence: 1 }, [
      { id: 'b', decision: index }, { id: other(index), decision: index }
    ]))
    t.same(kinds(results), { claimed: 1, taken: 8 })
    const winner = results.findIndex(({ kind }) => kind === 'claimed')
    const now = await bench.peer.interrupts.list(key)
    const claims = now.filter(({ state }) => state === 'claimed').map(({ id, claim, decision }) => [id, claim?.run, decision])
    t.same(claims, ['b', other(winner)].sort().map((id) => [id, `run-${winner}`, winner]))
  },

  'takes the same claim again for a retry, before and after an outcome, from nobody else': async (t, { store, peer }) => {
    const { key } = await paused(store, [anInterrupt('a'), anInterrupt('b')])
    const answers = [{ id: 'a', decision: 1 }, { id: 'b', decision: 2 }]
    const first = await store.interrupts.claim(key, claimant, answers)
    t.same(await peer.interrupts.claim(key, claimant, answers), first)
    await store.interrupts.finish(key, claimant, 'a', 'out')
    const later = await peer.interrupts.claim(key, claimant, answers)
    t.same([later.kind, states(recordsOf(later))], ['claimed', [['a', 'done'], ['b', 'claimed']]])
    for (const other of [{ run: 'answerer', fence: 4 }, { run: 'other', fence: 3 }]) {
      t.equal((await store.interrupts.claim(key, other, answers)).kind, 'taken')
      t.equal((await store.interrupts.finish(key, other, 'b', 'x')).kind, 'lost')
      await store.interrupts.release(key, other, ['b'])
    }
    t.same(states(await store.interrupts.list(key)), [['a', 'done'], ['b', 'claimed']])
  },

  'finishes nothing that was not claimed, or is not there': async (t, { store }) => {
    const { key } = await paused(store, [anInterrupt('a')])
    const [open] = await store.interrupts.list(key)
    t.same(await store.interrupts.finish(key, claimant, 'a', 1), { kind: 'lost', record: open })
    t.same(await store.interrupts.finish(key, claimant, 'b', 1), { kind: 'missing' })
    t.same(await store.interrupts.finish(aRun().key, claimant, 'a', 1), { kind: 'missing' })
    t.same(await store.interrupts.list(aRun().key), [])
  },

  'refuses a claim of the own run by who no longer owns it': async (t, { store, peer, advance }) => {
    const record = await paused(store, [anInterrupt('a')])
    const { key } = record
    const acquired = recordOf(await store.leases.acquire(key, aLease()))
    await advance(LEASE_MS)
    await peer.leases.takeover(key, aLease('node-b'))
    t.same(await store.interrupts.claim(key, { run: key.id, fence: acquired.fence }, [{ id: 'a', decision: 1 }]), { kind: 'fenced', fence: 3 })
    t.equal((await peer.interrupts.claim(key, { run: key.id, fence: 3 }, [{ id: 'a', decision: 1 }])).kind, 'claimed')
  },

  'opens again what a claimant gives back, without a trace of its decision': async (t, { store }) => {
    const record = await paused(store, [anInterrupt('a'), anInterrupt('b')])
    const { key } = record
    const before = await store.interrupts.list(key)
    await store.interrupts.claim(key, claimant, [{ id: 'a', decision: 1 }, { id: 'b', decision: 2 }])
    await store.interrupts.finish(key, claimant, 'b', 'out')
    for (let i = 0; i < 2; i++) await store.interrupts.release(key, claimant, ['a', 'b', 'x'])
    await store.interrupts.release(aRun().key, claimant, ['a'])
    const after = await store.interrupts.list(key)
    t.same(after[0], before[0])
    t.equal(after[1]?.state, 'done', 'what has an outcome stays')
    t.equal((await store.interrupts.claim(key, { run: 'other', fence: 1 }, [{ id: 'a', decision: 3 }])).kind, 'claimed')
  },

  'never gives out again what a dead claimant may have acted on': async (t, { store, peer }) => {
    const { key } = await paused(store, [anInterrupt('a'), anInterrupt('b'), anInterrupt('c'), anInterrupt('d'), anInterrupt('e')])
    await store.interrupts.claim(key, claimant, [{ id: 'a', decision: 1 }, { id: 'b', decision: 2 }])
    await store.interrupts.finish(key, claimant, 'b', 'out')
    await store.interrupts.claim(key, { run: 'other', fence: 1 }, [{ id: 'c', decision: 3 }])
    t.same(await peer.interrupts.abandon(key, claimant), [], 'a claim under the successor\'s own fence is alive')
    const successor = { run: 'answerer', fence: 4 }
    await store.interrupts.claim(key, successor, [{ id: 'd', decision: 4 }])
    const abandoned = await peer.interrupts.abandon(key, successor)
    t.same(states(abandoned), [['a', 'unknown']])
    t.same(await peer.interrupts.abandon(key, successor), abandoned, 'a retry answers the same')
    t.same(states(await store.interrupts.list(key)), [['a', 'unknown'], ['b', 'done'], ['c', 'claimed'], ['d', 'claimed'], ['e', 'open']])
    t.equal((await store.interrupts.claim(key, claimant, [{ id: 'a', decision: 1 }])).kind, 'taken')
    t.equal((await store.interrupts.finish(key, claimant, 'a', 'late')).kind, 'lost')
    await store.interrupts.release(key, claimant, ['a'])
    t.equal((await store.interrupts.list(key))[0]?.state, 'unknown')
    t.same(await store.interrupts.abandon(aRun().key, successor), [])
  },

  'lets an expired interrupt only be cancelled, and shows it until it is': async (t, { store, advance }) => {
    const fields = { key: aRun().key }
    const now = (await started(store)).updatedAt
    const { key, session } = await paused(store, [anInterrupt('short', { expiresAt: now + 5_000 }), anInterrupt('long')], fields)
    t.same(states(await store.interrupts.list(key)), [['short', 'open'], ['long', 'open']])
    await advance(6_000)
    t.same(states(await store.interrupts.open(key.owner, key.protocol, session)), [['short', 'expired'], ['long', 'open']])
    const late = await store.interrupts.claim(key, claimant, [{ id: 'long', decision: 1, cancels: true }, { id: 'short', decision: 1 }])
    t.same([late.kind, states(recordsOf(late))], ['expired', [['long', 'open'], ['short', 'expired']]])
    t.equal((await store.interrupts.claim(key, claimant, [{ id: 'short', decision: 'no', cancels: true }, { id: 'long', decision: 1 }])).kind, 'claimed')
    t.same(states(await store.interrupts.open(key.owner, key.protocol, session)), [])
    await store.interrupts.release(key, claimant, ['short', 'long'])
    t.same(states(await store.interrupts.list(key)), [['short', 'expired'], ['long', 'open']])
  },

  'shows what a session waits for, oldest first, across its runs and nothing else': async (t, { store, peer }) => {
    const made = [
      await paused(store, [anInterrupt('late', { createdAt: 3_000 }), anInterrupt('early', { createdAt: 1_000 })]),
      await paused(store, [anInterrupt('middle', { createdAt: 2_000 })])
    ] as const
    await paused(store, [anInterrupt('elsewhere')], { session: 'session-2' })
    await paused(store, [anInterrupt('other protocol')], { key: { ...aRun().key, protocol: 'other' } })
    await paused(store, [])
    const { owner, protocol } = made[0].key
    const open = async () => (await peer.interrupts.open(owner, protocol, 'session-1')).map(({ id, run }) => [id, run.id])
    t.same(await open(), [['early', made[0].key.id], ['middle', made[1].key.id], ['late', made[0].key.id]])
    await store.interrupts.claim(made[0].key, claimant, [{ id: 'early', decision: 1 }])
    t.same(await open(), [['middle', made[1].key.id], ['late', made[0].key.id]])
    await store.runs.commit(made[1].key, expect(made[1]), { patch: { state: 'cancelled' }, firstSeq: 1, events: [], closeInterrupts: true })
    await store.runs.delete(made[0].key)
    t.same(await open(), [])
    t.same(await store.interrupts.open(owner, protocol, 'session-3'), [])
  }
}
