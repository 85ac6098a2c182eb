import type { ListQuery } from '../run-index.ts'
import type { RunRecord } from '../run-store.ts'
import type { Store } from '../store.ts'
import { aRun, type Cases, codeOf, expect, started } from './harness.ts'

const owner = { tenant: 'acme', id: 'ann' }

function at (id: string, createdAt: number, protocol = 'fake') {
  return { key: { owner, protocol, id }, createdAt }
}

/** All pages, each as the ids of its runs. */
async function pages (store: Store, query: ListQuery): Promise<readonly string[]> {
  const found: string[] = []
  let cursor: string | undefined
  do {
    const page = await store.index.list(owner, cursor === undefined ? query : { ...query, cursor })
    found.push(...page.runs.map(({ key }) => key.id))
    cursor = page.cursor
  } while (cursor !== undefined)
  return found
}

/** Listing and looking up (R20). */
export const indexCases: Cases = {
  'lists records newest first, by time and then by id, in pages of any size': async (t, { store, peer }) => {
    const made: RunRecord[] = []
    for (const [id, time] of [['m', 5], ['b', 7], ['a', 7], ['c', 7], ['z', 1], ['y', 9]] as const) made.push(await started(store, at(id, time)))
    const wanted = ['y', 'c', 'b', 'a', 'm', 'z']
    for (const limit of [1, 2, 3, 6, 100]) t.same(await pages(peer, { limit }), wanted)
    const page = await peer.index.list(owner, { limit: 100 })
    t.same(page, { runs: wanted.map((id) => made.find(({ key }) => key.id === id)) })
    t.same(await peer.index.list({ id: 'nobody' }, { limit: 100 }), { runs: [] })
  },

  'filters by protocol, session, agent and state': async (t, { store }) => {
    const a = await started(store, { ...at('a', 1), session: 's1', agent: 'x' })
    const b = await started(store, { ...at('b', 2, 'other'), session: 's1', agent: 'y' })
    await started(store, { ...at('c', 3), session: 's2', agent: 'x', state: 'pending' })
    await store.runs.update(a.key, expect(a), { state: 'completed' })
    await store.runs.update(b.key, expect(b), { state: 'waiting' })
    t.same(await pages(store, { limit: 2, protocol: 'fake' }), ['c', 'a'])
    t.same(await pages(store, { limit: 2, session: 's1' }), ['b', 'a'])
    t.same(await pages(store, { limit: 1, agent: 'x' }), ['c', 'a'])
    t.same(await pages(store, { limit: 1, states: ['pending'] }), ['c'])
    t.same(await pages(store, { limit: 1, states: ['completed', 'waiting'] }), ['b', 'a'])
    t.same(await pages(store, { limit: 1, states: [] }), [])
    t.same(await pages(store, { limit: 5, protocol: 'fake', session: 's1', agent: 'x', states: ['completed'] }), ['a'])
    t.same(await pages(store, { limit: 5, protocol: 'other', states: ['completed'] }), [])
  },

  'neither repeats nor skips while runs are created and deleted between pages': async (t, { store, peer }) => {
    for (let i = 10; i < 30; i++) await started(store, at(`r${i}`, i))
    const found: string[] = []
    let cursor: string | undefined
    for (let page = 0; page === 0 || cursor !== undefined; page++) {
      const { runs, cursor: next } = await peer.index.list(owner, { limit: 3, ...cursor !== undefined && { cursor } })
      found.push(...runs.map(({ key }) => key.id))
      cursor = next
      await started(store, at(`new${page}`, 100 + page))
      // The last run of the page, on which the cursor may stand, and one that is still to come.
      await store.runs.delete({ owner, protocol: 'fake', id: `${found.at(-1)}` })
      if (page === 1) await store.runs.delete({ owner, protocol: 'fake', id: 'r15' })
    }
    const wanted = Array.from({ length: 20 }, (_, i) => `r${29 - i}`).filter((id) => id !== 'r15')
    t.same(found, wanted)
  },

  'never shows an entry whose record was not written or is gone': async (t, { store }) => {
    const run = aRun()
    const { key, clientId, session, createdAt } = run
    for (let i = 0; i < 2; i++) await store.index.add({ key, clientId, session, createdAt })
    t.same(await store.index.list(key.owner, { limit: 10 }), { runs: [] })
    t.equal(await store.index.last(key.owner, key.protocol, session), undefined)
    t.equal(await store.index.find(key.owner, key.protocol, clientId), undefined)
    const record = await started(store, run)
    t.same(await store.index.list(key.owner, { limit: 10 }), { runs: [record] })
    await store.runs.delete(key)
    t.same(await store.index.list(key.owner, { limit: 10 }), { runs: [] })
  },

  'finds the newest run of a session, and of a client\'s id': async (t, { store, peer }) => {
    await started(store, { ...at('b', 2), session: 's', clientId: 'c' })
    const newest = await started(store, { ...at('a', 5), session: 's', clientId: 'c' })
    await started(store, { ...at('late', 3), session: 's', clientId: 'c' })
    await started(store, { ...at('x', 9, 'other'), session: 's', clientId: 'c' })
    await started(store, { ...at('y', 9), session: 's2', clientId: 'c2' })
    const { key, clientId, session, createdAt } = aRun({ ...at('unwritten', 20), session: 's', clientId: 'c' })
    await store.index.add({ key, clientId, session, createdAt })
    t.same(await peer.index.last(owner, 'fake', 's'), newest)
    t.same(await peer.index.find(owner, 'fake', 'c'), newest)
    await store.runs.delete(newest.key)
    t.equal((await peer.index.last(owner, 'fake', 's'))?.key.id, 'late')
    t.equal((await peer.index.find(owner, 'fake', 'c'))?.key.id, 'late')
    t.equal(await peer.index.last(owner, 'fake', 's3'), undefined)
    t.equal(await peer.index.find(owner, 'fake', 'c3'), undefined)
  },

  'refuses a cursor that is none': async (t, { store }) => {
    await started(store, at('a', 1))
    for (const cursor of ['', 'x', '12', 'null', '[]', Buffer.from('[1]').toString('base64url'), Buffer.from('["a",1]').toString('base64url'), '\u0000', 'x'.repeat(5_000)]) {
      t.equal(await codeOf(store.index.list(owner, { limit: 1, cursor })), 'AGT_ERR_STORE_CURSOR')
    }
  }
}
