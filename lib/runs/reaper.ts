import { randomUUID } from 'node:crypto'
import { logEvent, type InterruptRecord, type Ownership, type RunKey, type RunRecord, type Store } from '../stores/index.ts'
import { NODE_LOST } from './errors.ts'
import { type Gates } from './gate.ts'
import { type RunLogger } from './logger.ts'
import { ownerField } from './owner-field.ts'
import { type RunProtocol } from './protocol.ts'
import { announceChange } from './run-channel.ts'
import { isClosed } from './stored-run.ts'

/** Runs taken over in one sweep. */
const BATCH = 50

/** What the reaper works with. */
export interface ReaperOptions {
  readonly store: Store
  readonly gates: Gates
  readonly logger: RunLogger
  readonly node: string
  readonly leaseMs: number
  /** The protocols that this node serves: it ends no others' runs (R13). */
  readonly protocols: ReadonlyMap<string, RunProtocol>
  /** Begins a run again that was just taken over; false where it can not. `takenAt`: the monotonic clock before it was taken. @default no run is */
  restart? (ownership: Ownership, takenAt: number): Promise<boolean>
  /** A run was ended; its readers on this node want to see that. Must not reject. */
  onReaped (record: RunRecord): Promise<void>
}

/**
 * Ends runs whose owner is gone: executed ones when their lease has run out, waiting ones that were bound to a node that
 * no longer beats (R13, R14).
 */
export class Reaper {
  readonly #options: ReaperOptions
  #isSweeping = false
  #wasAway = false
  #notBefore = 0

  constructor (options: ReaperOptions) {
    this.#options = options
  }

  /** One sweep. Never rejects; a call during another sweep does nothing. */
  async sweep (): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    try {
      await this.#sweep()
    } catch (error) {
      if (!this.#wasAway) this.#options.logger.warn({ err: error }, 'looking for lost runs fails; it is tried again at each beat')
      this.#wasAway = true
    }
    this.#isSweeping = false
  }

  async #sweep (): Promise<void> {
    const { store, protocols, leaseMs } = this.#options
    const query = { protocols: [...protocols.keys()], limit: BATCH }
    const expired = await store.leases.expired(query)
    const orphans = await store.nodes.orphans(query)
    if (this.#wasAway) {
      // Owners could not renew either: they get one full lease first (R8).
      this.#wasAway = false
      this.#notBefore = performance.now() + leaseMs
    }
    if (performance.now() < this.#notBefore) return
    for (const key of expired) await this.#take(key, 'takeover')
    for (const key of orphans) await this.#take(key, 'acquire')
  }

  async #take (key: RunKey, how: 'takeover' | 'acquire'): Promise<void> {
    const { store, node, leaseMs, protocols } = this.#options
    const protocol = protocols.get(key.protocol)
    const takenAt = performance.now()
    const taken = await store.leases[how](key, { node, op: randomUUID(), ms: leaseMs })
    const isOurs = taken.kind === 'taken' || taken.kind === 'acquired'
    // The store was asked for runs of our protocols only.
    if (isOurs && protocol !== undefined) await this.#decide(protocol, taken, { takenAt, isOrphan: how === 'acquire' })
  }

  /** What becomes of a run that is ours now. */
  async #decide (protocol: RunProtocol, taken: Ownership, { takenAt, isOrphan }: { readonly takenAt: number, readonly isOrphan: boolean }): Promise<void> {
    const { store, restart } = this.#options
    const { record, fence } = taken
    const unknown = await this.#abandonClaims(record, fence)
    const isWaiting = record.state === 'waiting'
    if (isWaiting && !isOrphan && unknown.length === 0) {
      // Its resume died before it had claimed anything: it waits on.
      await store.leases.release(record.key, fence)
      return
    }
    if (!isWaiting && unknown.length === 0 && await restart?.(taken, takenAt) === true) return
    await this.#end(protocol, taken)
  }

  async #end (protocol: RunProtocol, { record, fence, last }: Ownership): Promise<void> {
    const { store } = this.#options
    const { key } = record
    // A log that has ended with its pause takes nothing more: whoever answers is told by the record.
    const told = isClosed(protocol, record) ? [] : protocol.lost(record, NODE_LOST)
    const events = told.map(({ data, event, level }, index) => logEvent(last + 1 + index, data, event, level))
    const expected = { version: record.version, fence, op: randomUUID() }
    const result = await store.runs.commit(key, expected, {
      patch: { state: 'lost', end: { kind: 'lost', code: NODE_LOST.code, message: NODE_LOST.message }, endedAt: Date.now() },
      firstSeq: last + 1,
      events,
      closeInterrupts: true
    })
    if (result.kind === 'ok') await this.#reaped(result.record)
  }

  async #reaped (record: RunRecord): Promise<void> {
    const { gates, logger, onReaped, store } = this.#options
    const { key, session } = record
    await gates.leave(key.owner, session, key.id)
    logger.warn({ runId: key.id, protocol: key.protocol, agent: record.agent, ...ownerField(key.owner) }, 'a lost run was ended')
    announceChange(store.signals, key, logger)
    await onReaped(record)
  }

  /** What the dead owner had claimed is never done again (R21). */
  async #abandonClaims (record: RunRecord, fence: number): Promise<readonly InterruptRecord[]> {
    const { store } = this.#options
    const successor = { run: record.key.id, fence }
    const own = await store.interrupts.abandon(record.key, successor)
    const resumes = record.links?.resumes
    if (resumes === undefined) return own
    const others = await store.interrupts.abandon({ ...record.key, id: resumes }, successor)
    return [...own, ...others]
  }
}
