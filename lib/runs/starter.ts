import { randomUUID } from 'node:crypto'
import { type Topic } from '../bus/index.ts'
import { StoreUnavailableError, type InterruptRecord, type RunKey, type RunRecord } from '../stores/index.ts'
import { type Admission } from './admission.ts'
import { drive } from './drive.ts'
import { checkNamed, Claims } from './interrupts.ts'
import { type RunObserver } from './observer.ts'
import { type EngineParts } from './parts.ts'
import { type Stopper } from './stopper.ts'
import { ticketOf } from './ticket-data.ts'
import { topicKey } from './shelf.ts'
import { type InterruptProblem, type RunSpec, type StartResult } from './spec.ts'

type Undo = () => Promise<unknown>

/** What a new record says that its spec does not. */
interface NewRunFacts {
  readonly isHead: boolean
  /** The run that it answers. */
  readonly resumes: string | undefined
  readonly trace: string | undefined
  readonly bytes: number | undefined
}

/** Starts runs: each step that takes something is undone when a later one fails, so that a failed start leaves nothing behind. */
export class Starter {
  readonly #parts: EngineParts
  readonly #admission: Admission
  readonly #stopper: Stopper

  constructor (parts: EngineParts, admission: Admission, stopper: Stopper) {
    this.#parts = parts
    this.#stopper = stopper
    this.#admission = admission
  }

  /** Starts the run `id`. Rejects when the store is away; then nothing was started. */
  async start (spec: RunSpec, id: string): Promise<StartResult> {
    const undo: Undo[] = []
    try {
      const result = await this.#start(spec, id, undo)
      if (result.kind !== 'started') await this.#undo(undo, id)
      return result
    } catch (error) {
      await this.#undo(undo, id)
      throw error
    }
  }

  async #start (spec: RunSpec, id: string, undo: Undo[]): Promise<StartResult> {
    const { shelf, gates, node } = this.#parts
    const { owner, protocol, session, idempotency } = spec
    const key: RunKey = { owner, protocol: protocol.name, id }
    if (idempotency !== undefined) {
      const admission = await this.#admission.admit(key, idempotency)
      if (admission.kind !== 'admitted') return await this.#already(admission.kind, admission.record)
      undo.push(admission.withdraw)
    }
    const open = await this.#openInterrupts(spec)
    const problem = this.#check(spec, open)
    if (problem !== undefined) return { kind: 'interrupts', problem }

    undo.push(() => gates.leave(owner, session, id))
    const data = { clientId: spec.clientId, protocol: protocol.name, node }
    const ticket = await (spec.onBusySession === 'reject' ? gates.enterIfFree(owner, session, id, data) : gates.enter(owner, session, id, data))
    if ('holder' in ticket) return { kind: 'busy', runningId: ticketOf(ticket.holder).clientId }

    const bytes = await this.#checkStored(spec)
    const slot = await this.#parts.slots?.take(owner)
    if (slot !== undefined) undo.push(() => slot.release())
    const observer = this.#parts.observer?.starting?.({ id, protocol: protocol.name, agent: spec.agentId, isResumed: open.length > 0 })
    if (observer !== undefined) undo.push(async () => { observer.ended({ reason: 'not-started' }) })
    const topic = this.#openTopic(spec, id, undo)
    const takenAt = performance.now()
    const forget: Undo = () => this.#parts.store.runs.delete(key)
    undo.push(forget)
    const record = await this.#create(spec, key, topic, { isHead: ticket.isHead, resumes: open[0]?.run.id, trace: observer?.trace, bytes })
    const onUnknown = (): void => { undo.splice(undo.indexOf(forget), 1) }
    const claims = await this.#claim(spec, record, open, undo, onUnknown)
    if (claims !== undefined && !(claims instanceof Claims)) return { kind: 'interrupts', problem: claims }

    const driver = drive(this.#parts, protocol, record, topic, spec.replay)
    driver.begin({ record, takenAt, work: { spec, ticket, slot }, claims, observer })
    if (claims !== undefined) this.#link(claims, record, observer)
    shelf.add(driver)
    if (spec.onBusySession === 'supersede' && !ticket.isHead) this.#supersede(record)
    return { kind: 'started', run: driver }
  }

  async #already (kind: 'existing' | 'conflict', record: RunRecord): Promise<StartResult> {
    const run = await this.#parts.shelf.load(record)
    if (run !== undefined) return { kind, run }
    // It has expired between the two look-ups; the next start finds nothing.
    if (kind === 'conflict') return { kind }
    throw new StoreUnavailableError('runs.get')
  }

  /** The session's open interrupts, where they matter to this start. */
  async #openInterrupts (spec: RunSpec): Promise<readonly InterruptRecord[]> {
    const { store } = this.#parts
    if (spec.resumes === undefined && !mustResume(spec)) return []
    return await store.interrupts.open(spec.owner, spec.protocol.name, spec.session)
  }

  #check (spec: RunSpec, open: readonly InterruptRecord[]): InterruptProblem | undefined {
    const problem = checkNamed(open, spec.resumes?.interrupts ?? [])
    if (problem !== undefined) return problem
    // Claims are atomic on one run; a session with the open interrupts of two was not kept by us.
    const { resumes } = spec
    if (resumes?.run !== undefined && open.some(({ run }) => run.id !== resumes.run)) return { kind: 'taken', open, missing: [], ids: resumes.interrupts }
    const first = open[0]?.run.id
    const strange = open.filter(({ run }) => run.id !== first)
    return strange.length === 0 ? undefined : { kind: 'mismatch', open, missing: strange.map(({ id }) => id), ids: [] }
  }

  #openTopic (spec: RunSpec, id: string, undo: Undo[]): Topic {
    const { bus } = this.#parts
    const topic = bus.topic(topicKey(id), { watermark: 'manual', replay: spec.replay })
    undo.push(async () => { bus.drop(topic.key) })
    return topic
  }

  /** Index entry, record and first lease (R20: in this order). */
  async #create (spec: RunSpec, key: RunKey, topic: Topic, { isHead, resumes, trace, bytes }: NewRunFacts): Promise<RunRecord> {
    const { store, node, leases, storedBytes } = this.#parts
    const { clientId, session, idempotency } = spec
    const createdAt = Date.now()
    await store.index.add({ key, clientId, session, createdAt })
    const result = await store.runs.create({
      key,
      clientId,
      session,
      agent: spec.agentId,
      state: isHead ? 'running' : 'pending',
      epoch: topic.epoch,
      createdAt,
      detail: spec.detail ?? {},
      ...idempotency !== undefined && { fingerprint: idempotency.fingerprint },
      ...spec.stored !== undefined && { input: spec.stored },
      ...resumes !== undefined && { links: { resumes } },
      ...trace !== undefined && { trace },
      ...bytes !== undefined && { bytes }
    }, { node, op: randomUUID(), ms: leases.leaseMs })
    if (bytes !== undefined) storedBytes?.add(key.owner, bytes)
    // The id was made a moment ago: whoever is there is this very call, whose answer was lost.
    return result.record
  }

  /** What the request takes in the store, where that is limited. @throws AGT_ERR_RUN_STORAGE_LIMIT */
  async #checkStored (spec: RunSpec): Promise<number | undefined> {
    const { storedBytes } = this.#parts
    if (storedBytes === undefined) return undefined
    const bytes = storedBytes.sizeOf(spec.stored)
    await storedBytes.check(spec.owner, bytes)
    return bytes
  }

  async #claim (
    spec: RunSpec, record: RunRecord, open: readonly InterruptRecord[], undo: Undo[], onUnknown: () => void
  ): Promise<Claims | InterruptProblem | undefined> {
    const [first] = open
    if (spec.resumes === undefined || first === undefined) return undefined
    const { store } = this.#parts
    const claimant = { run: record.key.id, fence: record.fence }
    const claims = await Claims.take({ interrupts: store.interrupts, onUnknown }, first.run, claimant, open, spec.resumes.decisions)
    if (claims instanceof Claims) undo.push(() => claims.release())
    return claims
  }

  /** The runs of the session that are in the way give it up. */
  async #supersede (record: RunRecord): Promise<void> {
    try {
      await this.#stopper.supersede(record)
    } catch (error) {
      this.#parts.logger.warn({ err: error }, 'another run could not be superseded; the new one waits for it')
    }
  }

  /** The paused run that was answered is over: its log says so already, its record follows. */
  async #link (claims: Claims, record: RunRecord, observer: RunObserver | undefined): Promise<void> {
    const { store, logger } = this.#parts
    const { key } = claims
    try {
      const paused = await store.runs.get(key)
      if (paused === undefined) return
      observer?.answers?.(paused)
      const links = { ...paused.links, resumedBy: record.key.id }
      const patch = { state: 'completed' as const, end: { kind: 'resumed' }, endedAt: Date.now(), links }
      await store.runs.update(key, { version: paused.version, op: randomUUID() }, patch)
      await store.nodes.unbind(paused.node, key)
    } catch (error) {
      logger.warn({ err: error, runId: key.id }, 'a resumed run could not be linked')
    }
  }

  /** Latest first. What can not be undone now runs out by itself: keys, tickets and leases all end. */
  async #undo (undo: Undo[], id: string): Promise<void> {
    for (const step of undo.splice(0).reverse()) {
      try {
        await step()
      } catch (error) {
        this.#parts.logger.warn({ err: error, runId: id }, 'a failed start could not be undone; its parts run out by themselves')
      }
    }
  }
}

function mustResume (spec: RunSpec): boolean {
  return spec.requireResume ?? spec.protocol.resumesIn === 'session'
}
