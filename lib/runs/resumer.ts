import { randomUUID } from 'node:crypto'
import { type Decision } from '../agent/index.ts'
import { type InterruptRecord, type Ownership, type RunKey, type RunRecord } from '../stores/index.ts'
import { type Driver } from './driver.ts'
import { type Cause } from './ending.ts'
import { answerOf, type ClaimPorts, Claims } from './interrupts.ts'
import { insist } from './insist.ts'
import { type RunObserver } from './observer.ts'
import { type EngineParts } from './parts.ts'
import { type Run } from './run.ts'
import { type Slot } from './slots.ts'
import { type ExecutionSpec, type InterruptProblem, type ReplayLimits, type ResumeResult, type ResumeSpec } from './spec.ts'
import { takeUp } from './take-up.ts'

/** Milliseconds for which a waiting run's lease is asked for again when the store fails. */
const ACQUIRE_PATIENCE_MS = 500

/** What is kept in memory of a run that is only being ended. */
const ENDING_REPLAY: ReplayLimits = { maxEvents: 5_000, maxBytes: 4 * 1024 * 1024, ttlMs: 600_000 }

/** Takes waiting runs up again: to go on, or to end them (R2, R14). */
export class Resumer {
  readonly #parts: EngineParts

  constructor (parts: EngineParts) {
    this.#parts = parts
  }

  /** Goes on with a waiting run. Rejects when the store is away; then it waits on. */
  async resume (run: Run, spec: ResumeSpec): Promise<ResumeResult> {
    const { store } = this.#parts
    const { key } = run.record
    let record = await store.runs.get(key)
    // Its owner here knows of the pause before anybody goes on from it.
    if (record?.state === 'waiting' && await this.#untilTold(key)) record = await store.runs.get(key)
    if (record?.state !== 'waiting') return { kind: 'not-waiting', run }
    const all = await store.interrupts.list(key)
    const open = all.filter(({ state }) => state === 'open' || state === 'expired')
    const problem = checkAnswers(open, spec.decisions)
    if (problem !== undefined) return { kind: 'interrupts', problem }
    const slot = await this.#parts.slots?.take(key.owner)
    try {
      const result = await this.#reserved(key, async () => await this.#resume(run, spec, open, slot))
      if (result.kind !== 'resumed') await slot?.release()
      return result
    } catch (error) {
      await slot?.release()
      throw error
    }
  }

  /** Ends a waiting run. False when it does not wait any more. */
  async end ({ key }: RunRecord, cause: Cause): Promise<boolean> {
    await this.#untilTold(key)
    return await this.#reserved(key, async () => {
      const takenAt = performance.now()
      const ownership = await this.#acquire(key)
      if (ownership === undefined) return false
      const driver = await takeUp(this.#parts, ownership, ENDING_REPLAY)
      if (driver === undefined) {
        await this.#giveBack(ownership)
        return false
      }
      driver.begin({ record: ownership.record, takenAt, observer: this.#observe(ownership.record, false) }, cause)
      await driver.ended
      return true
    })
  }

  async #resume (run: Run, spec: ResumeSpec, open: readonly InterruptRecord[], slot: Slot | undefined): Promise<ResumeResult> {
    const { key } = run.record
    const agent = spec.agent ?? agentOf(this.#parts.shelf.driver(key.id))
    if (agent === undefined) return { kind: 'no-agent' }
    const takenAt = performance.now()
    const ownership = await this.#acquire(key)
    if (ownership === undefined) return { kind: 'not-waiting', run }
    let keepsLease = false
    const ports: ClaimPorts = { interrupts: this.#parts.store.interrupts, onUnknown: () => { keepsLease = true } }
    try {
      return await this.#proceed(run, ownership, takenAt, { spec: { ...spec, agent }, slot }, open, spec.decisions, ports)
    } catch (error) {
      if (!keepsLease) await this.#giveBack(ownership)
      throw error
    }
  }

  /** A pause may be stored and not yet told by the execution that paused. True when there was something to wait for. */
  async #untilTold ({ id }: RunKey): Promise<boolean> {
    const driver = this.#parts.shelf.driver(id)
    if (driver?.isActive !== true) return false
    await driver.settled()
    return true
  }

  /** While its next execution is prepared the run's record is ahead of its driver, which nobody may take for stale. */
  async #reserved<T> (key: RunKey, work: () => Promise<T>): Promise<T> {
    const release = this.#parts.shelf.driver(key.id)?.reserve()
    try {
      return await work()
    } finally {
      release?.()
    }
  }

  async #acquire (key: RunKey): Promise<Ownership | undefined> {
    const { store, leases, node } = this.#parts
    // One request, however often it is made: a lease whose acknowledgement is lost would be nobody's until it runs out.
    const request = { node, op: randomUUID(), ms: leases.leaseMs }
    const result = await insist(() => store.leases.acquire(key, request), ACQUIRE_PATIENCE_MS)
    return result.kind === 'acquired' ? result : undefined
  }

  async #proceed (
    run: Run, ownership: Ownership, takenAt: number, { spec, slot }: { readonly spec: ExecutionSpec, readonly slot: Slot | undefined },
    open: readonly InterruptRecord[], decisions: readonly Decision[], ports: ClaimPorts
  ): Promise<ResumeResult> {
    const { gates, node } = this.#parts
    const { record, fence } = ownership
    const { key, session } = record
    const driver = await takeUp(this.#parts, ownership, spec.replay)
    if (driver === undefined) {
      await this.#giveBack(ownership)
      return { kind: 'not-waiting', run }
    }
    const claims = await Claims.take(ports, key, { run: key.id, fence }, open, decisions)
    if (!(claims instanceof Claims)) {
      await this.#giveBack(ownership)
      return { kind: 'interrupts', problem: claims }
    }
    try {
      // Its own ticket where it kept the session, a new one at the end of the queue where it did not.
      const ticket = await gates.enter(key.owner, session, key.id, { clientId: record.clientId, protocol: key.protocol, node })
      driver.begin({ record, takenAt, work: { spec, ticket, slot }, claims, observer: this.#observe(record, true) })
      return { kind: 'resumed', run: driver }
    } catch (error) {
      await claims.release()
      throw error
    }
  }

  #observe ({ key, agent, trace }: RunRecord, isResumed: boolean): RunObserver | undefined {
    return this.#parts.observer?.starting?.({ id: key.id, protocol: key.protocol, agent, isResumed, ...trace !== undefined && { trace } })
  }

  async #giveBack ({ record, fence }: Ownership): Promise<void> {
    const { store, logger } = this.#parts
    try {
      await store.leases.release(record.key, fence)
    } catch (error) {
      logger.warn({ err: error, runId: record.key.id }, 'a lease could not be given back; it runs out by itself')
    }
  }
}

/** The agent of the last execution: the shared instance, or the one that was made and kept. */
function agentOf (driver: Driver | undefined): ExecutionSpec['agent'] | undefined {
  const agent = driver?.spec?.agent
  return typeof agent === 'function' ? driver?.agents.last : agent
}

function checkAnswers (open: readonly InterruptRecord[], decisions: readonly Decision[]): InterruptProblem | undefined {
  if (open.length === 0) return { kind: 'taken', open, missing: [], ids: [] }
  const answers = open.map((record) => answerOf(record, decisions))
  const missing = open.filter((_, index) => answers[index] === undefined).map(({ id }) => id)
  if (missing.length > 0) return { kind: 'mismatch', open, missing, ids: [] }
  const expired = open.filter(({ state }, index) => state === 'expired' && answers[index]?.cancels !== true).map(({ id }) => id)
  return expired.length > 0 ? { kind: 'expired', open, missing: [], ids: expired } : undefined
}
