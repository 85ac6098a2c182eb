import { type Cases, kinds, rivals } from './harness.ts'

const owner = { tenant: 'acme', id: 'ann' }

/** The session gate: order, leases, limits (R19). */
export const gateCases: Cases = {
  'lets the first in and queues the others in order of arrival': async (t, { store, peer }) => {
    t.equal(await store.gates.holder(owner, 's'), undefined)
    const holder = { id: 'a', parked: false, data: { run: 'a', list: [] } }
    t.same(await store.gates.enter(owner, 's', { id: 'a', ms: 10_000, data: { run: 'a', list: [] } }), { kind: 'in', head: true, position: 0, holder })
    t.same(await peer.gates.enter(owner, 's', { id: 'b', ms: 10_000 }), { kind: 'in', head: false, position: 1, holder })
    t.same(await store.gates.enter(owner, 's', { id: 'c', ms: 10_000 }), { kind: 'in', head: false, position: 2, holder })
    t.same(await peer.gates.holder(owner, 's'), holder)
    t.same(await store.gates.enter(owner, 's', { id: 'b', ms: 10_000, data: 'again' }), { kind: 'in', head: false, position: 1, holder }, 'keeps its place')
    t.same(await store.gates.enter(owner, 'other', { id: 'b', ms: 10_000 }), { kind: 'in', head: true, position: 0, holder: { id: 'b', parked: false } })
    t.same(await peer.gates.leave(owner, 's', 'a'), { id: 'b', parked: false, data: 'again' })
    t.same(await peer.gates.leave(owner, 's', 'a'), { id: 'b', parked: false, data: 'again' }, 'again')
    t.same(await store.gates.renew(owner, 's', 'c', 10_000), { kind: 'in', head: false, position: 1, holder: { id: 'b', parked: false, data: 'again' } })
    t.same(await store.gates.leave(owner, 's', 'c'), { id: 'b', parked: false, data: 'again' }, 'out of the middle')
    t.equal(await store.gates.leave(owner, 's', 'b'), undefined)
    t.equal(await peer.gates.holder(owner, 's'), undefined)
    t.equal(await peer.gates.leave(owner, 's', 'b'), undefined)
    t.same(await store.gates.renew(owner, 's', 'b', 10_000), { kind: 'out' })
  },

  'passes over tickets that ran out': async (t, { store, peer, advance }) => {
    await store.gates.enter(owner, 's', { id: 'a', ms: 5_000 })
    await store.gates.enter(owner, 's', { id: 'b', ms: 5_000 })
    await store.gates.enter(owner, 's', { id: 'c', ms: 20_000 })
    await advance(4_000)
    t.equal((await store.gates.renew(owner, 's', 'a', 5_000)).kind, 'in')
    await advance(4_000)
    t.same(await peer.gates.renew(owner, 's', 'c', 20_000), { kind: 'in', head: false, position: 1, holder: { id: 'a', parked: false } })
    t.same(await store.gates.renew(owner, 's', 'b', 5_000), { kind: 'out' })
    await advance(4_000)
    t.same(await peer.gates.holder(owner, 's'), { id: 'c', parked: false })
    t.same(await store.gates.renew(owner, 's', 'a', 5_000), { kind: 'out' }, 'the head too')
    t.same(await store.gates.enter(owner, 's', { id: 'a', ms: 5_000 }), { kind: 'in', head: false, position: 1, holder: { id: 'c', parked: false } })
    await advance(30_000)
    t.equal(await store.gates.leave(owner, 's', 'x'), undefined)
    t.equal(await store.gates.holder(owner, 's'), undefined)
  },

  'lets a ticket that ran out go on as long as nobody passed it over': async (t, { store, advance }) => {
    await store.gates.enter(owner, 's', { id: 'a', ms: 5_000 })
    await store.gates.enter(owner, 's', { id: 'b', ms: 50_000 })
    await advance(6_000)
    t.same(await store.gates.renew(owner, 's', 'a', 5_000), { kind: 'in', head: true, position: 0, holder: { id: 'a', parked: false } })
    await advance(6_000)
    t.same(await store.gates.enter(owner, 's', { id: 'a', ms: 5_000 }), { kind: 'in', head: true, position: 0, holder: { id: 'a', parked: false } })
  },

  'keeps a parked ticket until it leaves': async (t, { store, peer, advance }) => {
    await store.gates.enter(owner, 's', { id: 'a', ms: 5_000, data: 1 })
    t.same(await store.gates.renew(owner, 's', 'a', undefined), { kind: 'in', head: true, position: 0, holder: { id: 'a', parked: true, data: 1 } })
    await advance(86_400_000)
    t.same(await peer.gates.enter(owner, 's', { id: 'b', ms: undefined }), {
      kind: 'in', head: false, position: 1, holder: { id: 'a', parked: true, data: 1 }
    })
    t.same(await peer.gates.renew(owner, 's', 'a', 5_000), { kind: 'in', head: true, position: 0, holder: { id: 'a', parked: false, data: 1 } })
    await advance(5_000)
    t.same(await peer.gates.holder(owner, 's'), { id: 'b', parked: true })
  },

  'refuses a ticket beyond the limit, but not one that is in': async (t, { store, advance }) => {
    await store.gates.enter(owner, 's', { id: 'a', ms: 5_000, data: 'x' }, 1)
    t.same(await store.gates.enter(owner, 's', { id: 'b', ms: 50_000 }, 1), { kind: 'full', holder: { id: 'a', parked: false, data: 'x' } })
    t.equal((await store.gates.enter(owner, 's', { id: 'b', ms: 50_000 }, 2)).kind, 'in')
    t.equal((await store.gates.enter(owner, 's', { id: 'c', ms: 50_000 }, 2)).kind, 'full')
    t.equal((await store.gates.enter(owner, 's', { id: 'a', ms: 5_000 }, 1)).kind, 'in')
    await advance(6_000)
    t.same(await store.gates.enter(owner, 's', { id: 'c', ms: 50_000 }, 2), { kind: 'in', head: false, position: 1, holder: { id: 'b', parked: false } })
  },

  'gives simultaneous arrivals a place each': async (t, bench) => {
    const places = await rivals(bench, 10, (store, index) => store.gates.enter(owner, 's', { id: `t${index}`, ms: 10_000 }))
    t.same(places.map((place) => 'position' in place && place.position).sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    t.equal(new Set(places.map(({ holder }) => holder.id)).size, 1)
    const alone = await rivals(bench, 10, (store, index) => store.gates.enter(owner, 'single', { id: `t${index}`, ms: 10_000 }, 1))
    t.same(kinds(alone), { in: 1, full: 9 })
  }
}
