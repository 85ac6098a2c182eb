import type { LogEvent } from '../event-log.ts'
import type { RunState } from '../run-store.ts'
import { anInterrupt, aRun, events, LEASE_MS, type OpenStore } from './harness.ts'

/** Something one of two nodes does with what it believes to be true. Plain data, so that a generator can shrink it. */
export interface Command {
  readonly does: 'create' | 'learn' | 'update' | 'commit' | 'append' | 'repeat' | 'acquire' | 'takeover' | 'renew' | 'release' | 'claim' | 'finish' |
    'abandon' | 'wait'
  readonly node: 0 | 1
  /** Picks a state, a number of events, a stretch of time. */
  readonly n: number
}

/** Every kind of command. */
export const COMMANDS = [
  'create', 'learn', 'update', 'commit', 'append', 'repeat', 'acquire', 'takeover', 'renew', 'release', 'claim', 'finish', 'abandon', 'wait'
] as const satisfies readonly Command['does'][]

const STATES = ['running', 'waiting', 'waiting', 'completed', 'running', 'lost'] as const satisfies readonly RunState[]

/** The truth, as simple as can be: what a store has to be for one run. */
class Model {
  now = 0
  state: RunState | undefined
  version = 0
  fence = 0
  /** When the lease runs out; absent: there is none. Released: at once, and it can not be renewed. */
  lease: { readonly until: number, readonly released: boolean } | undefined
  log: LogEvent[] = []
  /** Where the current ownership began. */
  ownFirst = 1
  interrupt: { readonly state: 'open' | 'claimed' | 'done' | 'unknown', readonly fence: number } | undefined

  get isEnded (): boolean { return this.state === 'completed' || this.state === 'lost' }

  /** As the store answers a change that expects `version` and `fence`. */
  change (version: number, fence: number, state: RunState): 'ok' | 'stale' | 'missing' {
    if (this.state === undefined) return 'missing'
    if (version !== this.version || fence !== this.fence || this.isEnded) return 'stale'
    return 'ok'
  }

  write (state: RunState): void {
    this.version++
    this.state = state
    if (state !== 'running') this.lease = undefined
  }

  place (first: number, count: number): 'next' | 'there' | 'elsewhere' {
    if (first === this.log.length + 1) return 'next'
    return first >= this.ownFirst && first + count - 1 <= this.log.length ? 'there' : 'elsewhere'
  }

  take (mayTakeExpired: boolean): 'yes' | 'held' | 'ended' | 'missing' {
    if (this.state === undefined) return 'missing'
    if (this.isEnded) return 'ended'
    if (this.lease !== undefined && !(mayTakeExpired && this.lease.until <= this.now)) return 'held'
    this.fence++
    this.version++
    this.ownFirst = this.log.length + 1
    this.lease = { until: this.now + LEASE_MS, released: false }
    return 'yes'
  }
}

/** What a node believes; out of date as soon as the other one acts. */
interface Belief { version: number, fence: number, last: number }

/** How the store and the model differ, in the order of the commands. Empty: not at all. */
export async function differences (open: OpenStore, commands: readonly Command[]): Promise<readonly string[]> {
  const stores = [open.store, open.peer ?? open.store] as const
  const { key, ...init } = aRun()
  const model = new Model()
  const beliefs: readonly [Belief, Belief] = [{ version: 1, fence: 1, last: 0 }, { version: 1, fence: 1, last: 0 }]
  const found: string[] = []
  const claimant = (fence: number) => ({ run: key.id, fence })
  let op = 0

  for (const [index, { does, node, n }] of commands.entries()) {
    const store = stores[node]
    const belief = beliefs[node]
    const request = { node: `node-${node}`, op: `${key.id} ${++op}`, ms: LEASE_MS }
    const expected = { version: belief.version, fence: belief.fence, op: request.op }
    const state = STATES[n % STATES.length] as RunState // within the list
    const first = belief.last + 1
    const batch = events(first, first + n % 3, `${node} ${belief.fence} ${index}`)
    let wanted: unknown
    let got: unknown

    switch (does) {
      case 'create': {
        got = (await store.runs.create({ key, ...init }, request)).kind
        wanted = model.state === undefined ? 'created' : 'exists'
        if (wanted === 'created') Object.assign(model, { state: 'running', version: 1, fence: 1, lease: { until: model.now + LEASE_MS, released: false } })
        break
      }
      case 'learn': {
        const record = await store.runs.get(key)
        got = [record?.state, record?.version, record?.fence]
        wanted = model.state === undefined ? [undefined, undefined, undefined] : [model.state, model.version, model.fence]
        Object.assign(belief, { version: model.version, fence: model.fence, last: model.log.length })
        break
      }
      case 'update': {
        got = (await store.runs.update(key, expected, { state })).kind
        wanted = model.change(belief.version, belief.fence, state)
        if (wanted === 'ok') model.write(state)
        break
      }
      case 'commit': {
        const answer = await store.runs.commit(key, expected, { patch: { state }, firstSeq: first, events: batch, interrupts: [anInterrupt('i')] })
        got = answer.kind
        const change = model.change(belief.version, belief.fence, state)
        const isBusy = model.interrupt?.state === 'claimed' || model.interrupt?.state === 'unknown'
        const place = model.place(first, batch.length)
        wanted = change !== 'ok' ? change : isBusy ? 'stale' : place === 'elsewhere' ? 'misplaced' : 'ok'
        if (wanted === 'ok') {
          if (place === 'next') model.log.push(...batch)
          model.interrupt = { state: 'open', fence: 0 }
          model.write(state)
        }
        break
      }
      case 'append':
      case 'repeat': {
        // A repetition sends again what the node believes to be the end of the log.
        const from = does === 'append' ? first : Math.max(1, first - 1 - n % 3)
        const sent = does === 'append' ? batch : [...model.log.slice(from - 1, belief.last), ...belief.last < from ? batch : []]
        const answer = await store.log.append(key, belief.fence, from, sent)
        got = answer.kind
        const place = model.place(from, sent.length)
        wanted = model.state === undefined ? 'gone' : model.fence !== belief.fence ? 'fenced' : place === 'elsewhere' ? 'misplaced' : 'ok'
        if (wanted === 'ok' && place === 'next') model.log.push(...sent)
        if (wanted === 'ok' || wanted === 'misplaced') belief.last = model.log.length
        break
      }
      case 'acquire':
      case 'takeover': {
        const answer = await store.leases[does](key, request)
        got = 'fence' in answer && answer.kind !== 'held' ? ['yes', answer.fence, answer.last] : answer.kind
        const taken = model.take(does === 'takeover')
        wanted = taken === 'yes' ? ['yes', model.fence, model.log.length] : taken
        if (taken === 'yes') Object.assign(belief, { version: model.version, fence: model.fence, last: model.log.length })
        break
      }
      case 'renew': {
        got = await store.leases.renew(key, belief.fence, LEASE_MS)
        const isOurs = model.lease !== undefined && model.fence === belief.fence && !model.lease.released
        wanted = isOurs ? { kind: 'ok' } : { kind: 'lost', fence: model.fence }
        if (isOurs) model.lease = { until: model.now + LEASE_MS, released: false }
        break
      }
      case 'release': {
        await store.leases.release(key, belief.fence)
        if (model.lease !== undefined && model.fence === belief.fence) model.lease = model.state === 'waiting' ? undefined : { until: model.now, released: true }
        break
      }
      case 'claim': {
        got = (await store.interrupts.claim(key, claimant(belief.fence), [{ id: 'i', decision: n }])).kind
        const { interrupt } = model
        wanted = interrupt === undefined
          ? 'missing'
          : model.fence !== belief.fence
            ? 'fenced'
            : interrupt.state === 'open' || (interrupt.state !== 'unknown' && interrupt.fence === belief.fence) ? 'claimed' : 'taken'
        if (wanted === 'claimed' && interrupt?.state === 'open') model.interrupt = { state: 'claimed', fence: belief.fence }
        break
      }
      case 'finish': {
        got = (await store.interrupts.finish(key, claimant(belief.fence), 'i', n)).kind
        const { interrupt } = model
        const isOurs = (interrupt?.state === 'claimed' || interrupt?.state === 'done') && interrupt.fence === belief.fence
        wanted = interrupt === undefined ? 'missing' : isOurs ? 'ok' : 'lost'
        if (isOurs) model.interrupt = { state: 'done', fence: belief.fence }
        break
      }
      case 'abandon': {
        got = (await store.interrupts.abandon(key, claimant(belief.fence))).length
        if (model.interrupt?.state === 'claimed' && model.interrupt.fence < belief.fence) model.interrupt = { state: 'unknown', fence: model.interrupt.fence }
        wanted = model.interrupt?.state === 'unknown' ? 1 : 0
        break
      }
      case 'wait': {
        model.now += 1_000 + n % 4 * 4_000
        await open.advance(1_000 + n % 4 * 4_000)
        got = (await store.leases.expired({ protocols: [key.protocol], limit: 10 })).length
        wanted = model.lease !== undefined && model.lease.until <= model.now ? 1 : 0
        break
      }
    }
    if (JSON.stringify(got) !== JSON.stringify(wanted)) found.push(`${index} ${does}: ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`)
  }

  const page = await open.store.log.read(key, 0, 10_000)
  const log = model.state === undefined ? undefined : { oldest: 1, last: model.log.length, events: model.log }
  if (JSON.stringify(page) !== JSON.stringify(log)) found.push(`the log: ${JSON.stringify(page)} instead of ${JSON.stringify(log)}`)
  return found
}
