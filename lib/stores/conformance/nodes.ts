import { aLease, aRun, type Cases, expect, LEASE_MS, started, unique, waiting } from './harness.ts'

const all = { protocols: ['fake'], limit: 100 }

/** Nodes: heartbeats, bound runs, presence of subscribers. */
export const nodeCases: Cases = {
  'calls bound waiting runs orphans once their node has not beaten in time': async (t, { store, peer, advance }) => {
    await store.nodes.beat('node-a', 10_000)
    const record = await waiting(store)
    await store.nodes.bind('node-a', record.key)
    await advance(6_000)
    await store.nodes.beat('node-a', 10_000)
    await store.nodes.beat('node-b', 60_000)
    await advance(6_000)
    t.same(await peer.nodes.orphans(all), [])
    await advance(4_000)
    t.same(await peer.nodes.orphans(all), [record.key])
    await store.nodes.beat('node-a', 10_000)
    t.same(await peer.nodes.orphans(all), [], 'it came back')
  },

  'calls nothing an orphan that is running, ended, gone, unbound or bound to another node since': async (t, { store, peer }) => {
    await store.nodes.beat('node-b', 60_000)
    const running = await started(store)
    const ended = await started(store)
    const gone = await waiting(store)
    const unbound = await waiting(store)
    const moved = await waiting(store)
    for (const { key } of [running, ended, gone, unbound, moved]) await store.nodes.bind('node-a', key)
    await store.nodes.bind('node-a', aRun().key)
    await store.runs.update(ended.key, expect(ended), { state: 'failed' })
    await store.runs.delete(gone.key)
    await store.nodes.unbind('node-a', unbound.key)
    await store.nodes.unbind('node-a', unbound.key)
    await store.nodes.bind('node-b', moved.key)
    await store.nodes.unbind('node-a', moved.key)
    await store.nodes.unbind('node-a', gone.key)
    t.same(await peer.nodes.orphans(all), [])
    await store.runs.update(running.key, expect(running), { state: 'waiting' })
    t.same(await peer.nodes.orphans(all), [running.key], 'bound before it waited')
    await store.nodes.bind('node-x', moved.key)
    t.equal((await peer.nodes.orphans(all)).length, 2)
    const again = await waiting(store, { key: gone.key })
    t.same((await peer.nodes.orphans(all)).filter(({ id }) => id === again.key.id), [], 'a new run under the key of a deleted one')
  },

  'keeps a run bound that another node acquired and gave back': async (t, { store, peer }) => {
    const { key } = await waiting(store)
    await store.nodes.bind('node-a', key)
    await peer.leases.acquire(key, aLease('node-b'))
    await peer.leases.release(key, 2)
    t.same(await peer.nodes.orphans(all), [key])
  },

  'lists orphans by protocol, as many as asked for': async (t, { store, peer }) => {
    const made: string[] = []
    for (const protocol of ['p', 'p', 'p', 'q']) {
      const { key } = await waiting(store, { key: { owner: {}, protocol, id: unique('run') } })
      await store.nodes.bind(`node-${made.length % 2}`, key)
      await store.nodes.bind('node-a', key)
      made.push(key.id)
    }
    const found = (await peer.nodes.orphans({ protocols: ['p'], limit: 10 })).map(({ id }) => id)
    t.same(found.sort(), made.slice(0, 3).sort())
    t.equal((await peer.nodes.orphans({ protocols: ['p', 'q'], limit: 2 })).length, 2)
    t.same(await peer.nodes.orphans({ protocols: ['r'], limit: 2 }), [])
  },

  'counts the nodes that hold subscribers, until they leave or their time runs out': async (t, { store, peer, advance }) => {
    const { key } = await started(store)
    const other = await started(store)
    t.same(await peer.presence.nodes(key), [])
    await store.presence.enter(key, 'node-b', 5_000)
    await store.presence.enter(key, 'node-a', 20_000)
    await store.presence.enter(key, 'node-a', 20_000)
    t.same(await peer.presence.nodes(key), ['node-a', 'node-b'])
    t.same(await peer.presence.nodes(other.key), [])
    await advance(4_000)
    await peer.presence.enter(key, 'node-b', 5_000)
    await advance(4_000)
    t.same(await peer.presence.nodes(key), ['node-a', 'node-b'])
    await advance(2_000)
    t.same(await peer.presence.nodes(key), ['node-a'])
    await store.presence.leave(key, 'node-a')
    await store.presence.leave(key, 'node-a')
    t.same(await peer.presence.nodes(key), [])
  },

  'keeps no presence for a run that is not there': async (t, { store }) => {
    const { key } = aRun()
    await store.presence.enter(key, 'node-a', LEASE_MS)
    await store.presence.leave(key, 'node-a')
    t.same(await store.presence.nodes(key), [])
    t.equal(await store.runs.get(key), undefined)
  }
}
