import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { memoryStore, type LogPage, type RunKey, type Store } from 'fastify-agents/stores'
import { type ConformanceTest, storeConformance } from 'fastify-agents/stores/conformance'
import { Clock } from './bench.ts'

/** As little of a test runner as the suite asks for. Remembers the names of the cases that failed, with those they stand in. */
class Recorder implements ConformanceTest {
  readonly name: string
  readonly #group: string | undefined
  readonly #failed: Set<string>

  constructor (group: string | undefined, name = '', failed = new Set<string>()) {
    this.#group = group
    this.name = name
    this.#failed = failed
  }

  get failed (): readonly string[] { return [...this.#failed] }

  async test (name: string, body: (t: ConformanceTest) => Promise<void>): Promise<void> {
    if (this.name === '' && this.#group !== undefined && name !== `store, ${this.#group}`) return
    const child = new Recorder(this.#group, this.name === '' ? name : `${this.name}: ${name}`, this.#failed)
    await body(child).catch(() => child.#failed.add(child.name))
  }

  equal (found: unknown, wanted: unknown): void {
    if (found !== wanted) this.#failed.add(this.name)
  }

  same (found: unknown, wanted: unknown): void {
    if (!isDeepStrictEqual(found, wanted)) this.#failed.add(this.name)
  }
}

/** The cases, of one group or all, that fail for a memory store changed by `change`. */
async function failing (change: (store: Store) => Store, group?: string): Promise<readonly string[]> {
  const recorder = new Recorder(group)
  await storeConformance(recorder, {
    name: 'store',
    open: async () => {
      const clock = new Clock()
      const store = memoryStore({ now: clock.now })
      return { store: change(store), advance: (ms) => { clock.time += ms }, close: () => store.close(), reopen: async () => change(store) }
    }
  })
  return recorder.failed
}

function turn (): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A port with some methods replaced; the others work on the port itself. */
function changed<Port extends object> (port: Port, methods: Partial<Port>): Port {
  return new Proxy(port, {
    get: (target, name) => {
      const method: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name)
      return typeof method === 'function' ? method.bind(Reflect.has(methods, name) ? methods : target) : method
    }
  })
}

function joined ({ owner, protocol, id }: RunKey): RunKey {
  return { owner: { id: [owner.tenant, owner.id].join(':') }, protocol, id }
}

const mutants: Readonly<Record<string, readonly [group: string, change: (store: Store) => Store]>> = {
  'appends whatever the fence': ['log', (store) => ({
    ...store,
    log: changed(store.log, {
      append: async (key, fence, firstSeq, events, limits) =>
        await store.log.append(key, (await store.runs.get(key))?.fence ?? fence, firstSeq, events, limits)
    })
  })],
  'computes the oldest sequence': ['log', (store) => ({
    ...store,
    log: changed(store.log, {
      read: async (key, after, limit) => {
        const page = await store.log.read(key, after, limit)
        return page && { ...page, oldest: Math.max(1, page.last - 255) } satisfies LogPage
      }
    })
  })],
  'does not know a repeated append': ['log', (store) => ({
    ...store,
    log: changed(store.log, {
      append: async (key, fence, firstSeq, events, limits) => {
        const page = await store.log.read(key, 0, 1)
        if (page !== undefined && events.length > 0 && firstSeq <= page.last) return { kind: 'misplaced', last: page.last }
        return await store.log.append(key, fence, firstSeq, events, limits)
      }
    })
  })],
  'writes a barrier in two steps': ['barriers', (store) => ({
    ...store,
    runs: changed(store.runs, {
      commit: async (key, expected, barrier) => {
        await store.log.append(key, expected.fence, barrier.firstSeq, barrier.events)
        return await store.runs.commit(key, expected, barrier)
      }
    })
  })],
  'forgets the op of a change': ['runs', (store) => ({
    ...store,
    runs: changed(store.runs, { update: async (key, { op, ...expected }, patch) => await store.runs.update(key, expected, patch) })
  })],
  'takes over without asking for the time': ['leases', (store) => ({
    ...store,
    leases: changed(store.leases, {
      takeover: async (key, request) => {
        await store.leases.release(key, (await store.runs.get(key))?.fence ?? 0)
        return await store.leases.takeover(key, request)
      }
    })
  })],
  'claims one by one': ['interrupts', (store) => ({
    ...store,
    interrupts: changed(store.interrupts, {
      claim: async (key, claimant, answers) => {
        for (const answer of answers) {
          const result = await store.interrupts.claim(key, claimant, [answer])
          if (result.kind !== 'claimed') return result
        }
        return await store.interrupts.claim(key, claimant, answers)
      }
    })
  })],
  'abandons claims that are alive': ['interrupts', (store) => ({
    ...store,
    interrupts: changed(store.interrupts, {
      abandon: async (key, { run, fence }) => await store.interrupts.abandon(key, { run, fence: fence + 1 })
    })
  })],
  'looks first and sets then': ['small values', (store) => ({
    ...store,
    kv: changed(store.kv, {
      setIfAbsent: async (key, value, ttlMs) => {
        const there = await store.kv.get(key)
        if (there !== undefined) return { kind: 'exists', value: there }
        await turn()
        await store.kv.set(key, value, ttlMs)
        return { kind: 'set' }
      }
    })
  })],
  'sends a ticket that enters again to the end': ['gates', (store) => ({
    ...store,
    gates: changed(store.gates, {
      enter: async (owner, session, ticket, maxTickets) => {
        await store.gates.leave(owner, session, ticket.id)
        return await store.gates.enter(owner, session, ticket, maxTickets)
      }
    })
  })],
  'pages by offset': ['index', (store) => ({
    ...store,
    index: changed(store.index, {
      list: async (owner, { cursor, ...query }) => {
        const offset = cursor === undefined ? 0 : Number(cursor)
        const { runs } = await store.index.list(owner, { ...query, limit: 1_000 })
        const page = runs.slice(offset, offset + query.limit)
        return offset + query.limit < runs.length ? { runs: page, cursor: String(offset + query.limit) } : { runs: page }
      }
    })
  })],
  'delivers within publish': ['signals', (store) => {
    const handlers = new Set<{ message (message: never): void }>()
    return {
      ...store,
      signals: changed(store.signals, {
        publish: async (channel, message) => {
          for (const handler of handlers) handler.message(message as never)
          await store.signals.publish(channel, message)
        },
        subscribe: async (channel, handler) => {
          handlers.add(handler)
          return await store.signals.subscribe(channel, handler)
        }
      })
    }
  }],
  'joins an owner\'s ids to one': ['owners', (store) => ({
    ...store,
    runs: changed(store.runs, {
      create: (run, lease) => store.runs.create({ ...run, key: joined(run.key) }, lease), get: (key) => store.runs.get(joined(key))
    })
  })],
  'forgets a run\'s log when it is opened again': ['durability', (store) => {
    let isFirst = true
    return {
      ...store,
      get log () {
        const { log } = store
        return isFirst ? log : changed(log, { read: async () => ({ oldest: 1, last: 0, events: [] }) })
      },
      get kv () {
        isFirst = false
        return store.kv
      }
    }
  }]
}

t.test('passes a store that keeps its promises, with no more of a test runner than it asks for', async (t) => {
  t.same(await failing((store) => store), [])
})

t.test('fails a store that breaks one', async (t) => {
  for (const [name, [group, change]] of Object.entries(mutants)) {
    const failed = await failing(change, group)
    t.not(failed.length, 0, `${name}: fails ${failed.length} cases of ${group}`)
  }
})
