import { type Topic } from '../bus/index.ts'
import { type RunRecord } from '../stores/index.ts'
import { type Audience } from './audience.ts'
import { closeExecution, type ClosedExecution } from './closing.ts'
import { deferred } from './deferred.ts'
import { type ConnectOptions, type Connection } from './disconnect.ts'
import { type DriverHost } from './driver-host.ts'
import { abortReason, causeOf, endTimes, stateOf, type Cause } from './ending.ts'
import { BARRIER_OVERFLOW, STORE_UNAVAILABLE } from './errors.ts'
import { Execution, type ExecutionHost } from './execution.ts'
import { FlowControl } from './flow.ts'
import { type FoldKeeper } from './fold.ts'
import { type Followed } from './following.ts'
import { type Ticket } from './gate.ts'
import { insist } from './insist.ts'
import { knownCallsOf, type Claims } from './interrupts.ts'
import { KeptAgents } from './kept-agents.ts'
import { type Lease } from './lease.ts'
import { type RunLogger } from './logger.ts'
import { observedEnd, type RunObserver } from './observer.ts'
import { type RunProtocol, type Snapshot } from './protocol.ts'
import { Readers } from './readers.ts'
import { type RunLog } from './run-log.ts'
import { type Run } from './run.ts'
import { type Slot } from './slots.ts'
import { type ExecutionSpec } from './spec.ts'
import { executionOf, type Tenure } from './tenure.ts'

/** Milliseconds an agent waits for its caller, unless its run says otherwise (R17). */
const WRITE_TIMEOUT_MS = 30_000

/** A run on the node that executes it: its executions one after the other, the latch of each, and what follows from its end. */
export class Driver implements Run, ExecutionHost, Followed {
  readonly protocol: RunProtocol
  /** Its readers on other nodes (R18). */
  readonly audience: Audience
  /** The instances that were made for the run, while it may still need them. */
  readonly agents = new KeptAgents(this)
  readonly #host: DriverHost
  readonly #log: RunLog
  readonly #logger: RunLogger
  readonly #readers: Readers
  readonly #closed = deferred<RunRecord>()
  #settled = deferred<RunRecord>()
  #record: RunRecord
  #isFirst = true
  #spec: ExecutionSpec | undefined
  #execution: Execution | undefined
  #cause: Cause | undefined
  #lease: Lease | undefined
  #ticket: Ticket | undefined
  #slot: Slot | undefined
  #flow: FlowControl | undefined
  #claims: Claims | undefined
  #observer: RunObserver | undefined
  #isAbandoned = false
  #isGivenUp = false
  #isBound = false
  #reservations = 0

  constructor (host: DriverHost, protocol: RunProtocol, record: RunRecord, log: RunLog, logger: RunLogger, audience: Audience) {
    this.#host = host
    this.protocol = protocol
    this.#record = record
    this.#log = log
    this.#logger = logger
    this.audience = audience
    this.#readers = new Readers(this, host.following, false, () => { this.#onAbandoned() })
  }

  get record (): RunRecord { return this.#readers.successor?.record ?? this.#record }
  get fold (): FoldKeeper | undefined { return this.#log.fold }
  get topic (): Topic { return this.#log.topic }
  get ended (): Promise<RunRecord> { return this.#closed.promise }
  get emit (): RunLog['emit'] { return this.#log.emit }
  get timestamp (): () => string { return this.#host.burst.timestamp }

  /** Whether an execution is queued or under way. */
  get isActive (): boolean { return this.#execution !== undefined }

  /** Whether the agent that executes it now says that it may be given the same input again. */
  get isRestartable (): boolean { return this.#execution?.agent?.capabilities?.restartable === true }

  /** Whether nobody here knows how it has ended, or goes on: the store does. */
  get isGivenUp (): boolean { return this.#isGivenUp }

  /** Whether it is active or about to be: nobody else may take its place. */
  get isReserved (): boolean { return this.isActive || this.#reservations > 0 }

  /** What the last execution was given. */
  get spec (): ExecutionSpec | undefined { return this.#spec }

  settled (): Promise<RunRecord> {
    return this.#readers.successor?.settled() ?? this.#settled.promise
  }

  connect (options?: ConnectOptions): Connection {
    if (options?.own === true) this.#flow?.callerCame()
    return this.#readers.open(options)
  }

  snapshot (): Snapshot | undefined {
    return this.#readers.successor?.snapshot() ?? this.#log.snapshot(this.#record)
  }

  /** While it waits here another node may go on with it, whose record says so. */
  readonly take = (): boolean => false

  /** Keeps the driver in its place while its next execution is prepared; call what it returns when that has begun or failed. */
  reserve (): () => void {
    this.#reservations++
    return () => { this.#reservations-- }
  }

  /** Begins an execution; everything follows by itself. `cause` given: it only ends the run. */
  begin (tenure: Tenure, cause?: Cause): void {
    const { record, work, claims, observer } = tenure
    if (!this.#isFirst) this.#settled = deferred()
    this.#readers.elsewhere(false)
    this.#record = record
    // Who follows it has heard of the owner before.
    if (record.fence > 1) this.#host.announce(record)
    this.#claims = claims
    this.#observer = observer
    this.#ticket = work?.ticket
    this.#slot = work?.slot
    this.#cause = undefined
    if (work !== undefined) {
      this.#spec = work.spec
      this.#readers.setPolicy(work.spec.onDisconnect)
    }
    const onLost = (): void => { this.end({ kind: 'lost' }) }
    const onUnavailable = (): void => { this.end({ kind: 'unavailable' }) }
    const lease = this.#lease = this.#host.leases.hold(record.key, record.fence, tenure.takenAt, onLost)
    const flow = this.#flow = new FlowControl({
      burst: this.#host.burst,
      lease,
      log: this.#log,
      writeTimeoutMs: this.#spec?.writeTimeoutMs ?? WRITE_TIMEOUT_MS,
      patienceMs: this.#host.patienceMs,
      onCallerStalled: () => { this.#readers.dropOwn() },
      onUnavailable,
      onFull: () => { this.end({ kind: 'failed', error: BARRIER_OVERFLOW }) }
    })
    this.#log.begin(record, { isCertain: () => lease.assure(() => { this.#log.wake() }), onLost, onUnavailable })
    this.#isFirst = false
    const index = executionOf(record)
    const execution = this.#execution = new Execution({
      host: this,
      flow,
      protocol: this.protocol,
      record,
      claims,
      observer,
      info: { index, resumed: index > 0 || claims !== undefined, knownCalls: knownCallsOf(claims?.records ?? []) }
    })
    if (cause !== undefined) this.end(cause)
    this.#live(execution).catch((error: unknown) => {
      this.#logger.error({ err: error }, 'a run failed in a way that nothing can be told of')
      this.#drop(false)
    })
  }

  /** Ends the execution for a reason; the first one wins. Answers whether this one did. */
  end (cause: Cause, maxGraceMs?: number): boolean {
    const execution = this.#execution
    if (execution === undefined || this.#cause !== undefined) {
      this.#logger.debug({ cause: cause.kind, first: this.#cause?.kind }, 'a later end of the run is dropped')
      return false
    }
    this.#cause = cause
    // What the agent still says is not told (R8), and could not be stored.
    if (cause.kind === 'lost' || cause.kind === 'unavailable') this.#log.silence()
    execution.abort(abortReason(cause), maxGraceMs)
    return true
  }

  /** The store holds a newer record of the run, which is over here. */
  adopt (record: RunRecord): void {
    this.#record = record
  }

  /** The run goes on as `run`: whoever waits for this one waits for that. */
  forward (run: Run): void {
    // A resume that is being prepared may go on with what is kept here, see handOver().
    if (!this.isReserved) this.agents.close()
    this.audience.end()
    this.#readers.forward(run)
    run.ended.then((record) => {
      this.agents.close()
      this.#record = record
      this.#closed.resolve(record)
    }, () => {})
  }

  /** The run goes on in a driver of its own on this node, which keeps from now on what was kept here. */
  handOver (driver: Driver): void {
    this.agents.handOver(driver.agents)
    this.forward(driver)
  }

  /** Gives the run up at once, telling nobody: another node may end it. */
  abandon (): void {
    this.#isAbandoned = true
    this.end({ kind: 'lost' }, 0)
    this.#log.silence()
    // An end that can not be stored may be tried for longer than this process lasts.
    this.agents.close()
  }

  hold (): void {
    this.#log.hold()
  }

  readonly warn = (error: unknown, sentence: string): void => {
    this.#logger.warn({ err: error }, sentence)
  }

  async #live (execution: Execution): Promise<void> {
    let timeout: NodeJS.Timeout | undefined
    const spec = this.#spec
    if (spec !== undefined && await this.#admit(execution)) {
      const { runTimeoutMs } = spec
      if (runTimeoutMs > 0) timeout = setTimeout(() => { this.end({ kind: 'timeout' }) }, runTimeoutMs).unref()
      const outcome = await execution.run(spec)
      clearTimeout(timeout)
      if (outcome !== undefined) this.#cause ??= causeOf(outcome)
      // What a failed agent has left running stops with it.
      if (outcome?.kind === 'threw') execution.abort(abortReason(outcome))
    }
    await this.#conclude(execution, this.#cause)
  }

  /** Waits for the session's gate and says that the run is running. */
  async #admit (execution: Execution): Promise<boolean> {
    const ticket = this.#ticket
    if (execution.signal.aborted || ticket === undefined) return false
    try {
      if (!await ticket.wait(execution.signal)) return false
      if (this.#record.state === 'running') return true
      const { runs } = this.#host.store
      const { key, version, fence } = this.#record
      const op = `run-${fence}`
      const result = await runs.update(key, { version, fence, op }, { state: 'running' })
      if (result.kind === 'ok') this.#record = result.record
      else this.end({ kind: 'lost' })
      this.audience.changed()
      return result.kind === 'ok'
    } catch (error) {
      this.#logger.warn({ err: error }, 'a run could not begin')
      this.end({ kind: 'unavailable' })
      return false
    }
  }

  async #conclude (execution: Execution, cause: Cause | undefined): Promise<void> {
    this.#flow?.end()
    this.#collect(execution)
    // Whatever aborts an execution has latched its cause before.
    if (cause === undefined || cause.kind === 'lost') this.#drop(false)
    else if (cause.kind === 'unavailable') this.#drop(!this.#isAbandoned)
    else {
      const closed = closeExecution({
        protocol: this.protocol, record: this.#record, log: this.#log, logger: this.#logger, interruptTtlMs: this.#spec?.interruptTtlMs ?? 0
      }, execution, cause)
      await this.#settle(execution, closed)
    }
  }

  /** Stores the end, frees the session, and only then tells (R3). */
  async #settle (execution: Execution, { end, endRecord, interrupts }: ClosedExecution): Promise<void> {
    const isPaused = interrupts.length > 0
    const isClosed = !isPaused || this.protocol.resumesIn === 'session'
    const canRebuild = execution.agent?.capabilities?.resume === true
    try {
      // Outcomes and bindings stand under other keys than the run: they come first, and nothing is promised without them.
      await insist(async () => {
        await this.#claims?.finishRest(end.kind === 'paused' || end.kind === 'completed')
        await this.#bind(isPaused && !canRebuild)
      }, this.#host.patienceMs, () => this.#isAbandoned)
    } catch (error) {
      this.#logger.warn({ err: error }, 'what belongs to the end of the run could not be stored')
      this.#drop(!this.#isAbandoned)
      return
    }
    const result = await this.#log.commit(this.#record, {
      patch: { state: stateOf(end), ...isPaused ? {} : { end: endRecord, ...endTimes(this.#spec?.keepMs) } },
      interrupts,
      closeInterrupts: !isPaused
    })
    if (result.kind !== 'ok') {
      this.#drop(result.kind === 'unavailable' && !this.#isAbandoned)
      return
    }
    this.#lease?.drop()
    this.#record = result.record
    await this.#freeSession(isPaused)
    this.#tell()
    this.#logger.info({ end: end.kind, state: this.#record.state }, isPaused ? 'the run waits' : 'the run has ended')
    this.#observer?.ended(observedEnd(end))
    this.#finish(isClosed, isClosed || canRebuild)
  }

  #tell (): void {
    try {
      this.#log.tell()
    } catch (error) {
      // The bus was closed under us: what is stored is true all the same.
      this.#logger.warn({ err: error }, 'the end of a run could not be told')
    }
  }

  /** Ties the waiting run to this node, or unties it (R14). */
  async #bind (isBound: boolean): Promise<void> {
    if (!isBound && !this.#isBound) return
    await (isBound ? this.#host.bindToNode(this.#record) : this.#host.unbindFromNode(this.#record))
    this.#isBound = isBound
  }

  async #freeSession (isPaused: boolean): Promise<void> {
    const { key, session } = this.#record
    // Before the end is told: who reads it may start the next run.
    await this.#slot?.release()
    try {
      if (isPaused && this.#spec?.holdGateWhileWaiting === true) await this.#ticket?.park()
      else await this.#host.gates.leave(key.owner, session, key.id)
    } catch (error) {
      this.#logger.warn({ err: error }, 'a session could not be freed; its ticket runs out by itself')
    }
  }

  /** Nothing more is promised: the caller is told so if that is allowed, everybody else comes again and asks the store. */
  #drop (mayTell: boolean): void {
    const lease = this.#lease
    this.#isGivenUp = true
    lease?.drop()
    const isTold = mayTell && lease?.isCurrent(performance.now()) === true
    if (isTold) {
      this.#log.tellUnstored(this.#record, this.protocol.lost(this.#record, STORE_UNAVAILABLE))
      this.#record = { ...this.#record, state: 'failed', end: { kind: 'failed', code: STORE_UNAVAILABLE.code, message: STORE_UNAVAILABLE.message } }
    } else {
      this.#log.silence()
      this.#record = { ...this.#record, state: 'lost' }
    }
    this.#logger.warn({ state: this.#record.state }, 'the run is given up by this node')
    this.#observer?.ended({ reason: this.#isAbandoned ? 'handed-over' : this.#cause?.kind === 'lost' ? 'lost' : 'unavailable' })
    // A log without an end is not ended: its readers are sent away with a cursor when it is discarded.
    this.#finish(true, true, isTold)
    this.#host.discard(this.topic)
  }

  #finish (isClosed: boolean, closesAgents: boolean, endsLog = isClosed): void {
    // Ended runs stay at hand for as long as their topics, so nothing stays that only the execution needed.
    this.#execution = undefined
    this.#cause = undefined
    this.#claims = undefined
    this.#observer = undefined
    // Of a run that could not say its end; never rejects.
    this.#slot?.release()
    this.#slot = undefined
    this.#flow = undefined
    if (closesAgents) this.agents.close()
    if (isClosed) {
      this.#spec = undefined
      if (endsLog) this.topic.end()
      this.#readers.end()
    }
    this.audience.changed()
    if (isClosed) this.audience.end()
    else this.#readers.elsewhere(true)
    this.#host.onIdle(this, isClosed)
    if (isClosed) this.#closed.resolve(this.#record)
    this.#settled.resolve(this.#record)
  }

  /** Remembers an instance that was made for this run. */
  #collect (execution: Execution): void {
    if (typeof this.#spec?.agent === 'function' && execution.agent !== undefined) this.agents.add(execution.agent)
  }

  async #onAbandoned (): Promise<void> {
    if (!this.isActive) return
    // Those that we have not heard of: each counts from now on, for as long as it says so.
    for (const node of await this.#host.remoteReaders(this.#record)) this.audience.join(node)
    if (this.#readers.size === 0) this.end({ kind: 'interrupted', why: 'disconnect' })
  }
}
