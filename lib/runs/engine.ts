import { randomUUID } from 'node:crypto'
import { EventBus, type Topic } from '../bus/index.ts'
import {
  isEnded, memoryStore, type InterruptRecord, type ListQuery, type Owner, type RunKey, type RunPage, type RunRecord, type Store
} from '../stores/index.ts'
import { Admission } from './admission.ts'
import { Burst } from './burst.ts'
import { type Census, countRuns } from './census.ts'
import { Deadlines } from './deadline.ts'
import { type DriverHost } from './driver-host.ts'
import { isEpochOf } from './epoch.ts'
import { ProtocolTakenError } from './errors.ts'
import { Following } from './following.ts'
import { Gates } from './gate.ts'
import { LeaseKeeper } from './lease.ts'
import { SILENT, type RunLogger } from './logger.ts'
import { NodeChannel, type NodeMessage, type RemoteCause } from './node-channel.ts'
import { type EngineObserver } from './observer.ts'
import { type OwnerLimits, ownerLimits } from './owner-limits.ts'
import { type EngineParts } from './parts.ts'
import { type RunProtocol } from './protocol.ts'
import { Reaper } from './reaper.ts'
import { type Restart, Restarter } from './restarter.ts'
import { Resumer } from './resumer.ts'
import { type Run } from './run.ts'
import { announceChange } from './run-channel.ts'
import { Shelf } from './shelf.ts'
import { endAll, type CloseOptions } from './shutdown.ts'
import { type Idempotency, type ResumeResult, type ResumeSpec, type RunSpec, type StartResult } from './spec.ts'
import { Starter } from './starter.ts'
import { Stopper } from './stopper.ts'
import { ticketOf } from './ticket-data.ts'
import { MAX_AHEAD_MS } from './writer.ts'

/** Options of a {@link RunEngine}. */
export interface EngineOptions {
  /** Where runs are kept; one that is passed in is left open. @default a memory store of its own */
  readonly store?: Store
  /** Holds the logs in memory; one that is passed in is left open. @default a bus of its own */
  readonly bus?: EventBus
  /** @default none */
  readonly logger?: RunLogger
  /** Name of this process among those that share the store. @default a random one */
  readonly node?: string
  /** Milliseconds a run belongs to its node unless renewed; a dead node's runs end within about that time. @default 15000 */
  readonly leaseMs?: number
  /** Milliseconds after which a store call counts as failed. @default 2000 */
  readonly storeTimeoutMs?: number
  /** Milliseconds an idempotency key is remembered. @default 86400000 */
  readonly dedupeTtlMs?: number
  /** For each owner. @default no limits */
  readonly limits?: OwnerLimits | undefined
  /** Who watches the runs. @default nobody */
  readonly observer?: EngineObserver | undefined
}

/** How a run is stopped. */
export interface StopOptions {
  /** Why, for the protocol's terminal. */
  readonly message?: string
}

/**
 * Runs agents for every protocol: admits a start once, one run a session at a time, stores before it promises, and ends each
 * run exactly once, whatever the agent, the caller, the store or the node does.
 */
export class RunEngine {
  readonly #parts: EngineParts
  readonly #deadlines: Deadlines
  readonly #reaper: Reaper
  readonly #starter: Starter
  readonly #admission: Admission
  readonly #resumer: Resumer
  readonly #restarter: Restarter
  readonly #stopper: Stopper
  readonly #following: Following
  readonly #ownsStore: boolean
  readonly #ownsBus: boolean
  readonly #protocols = new Map<string, RunProtocol>()
  readonly #starting = new Map<string, Promise<unknown>>()
  #isClosing = false
  #closed: Promise<void> | undefined

  constructor (options: EngineOptions = {}) {
    const leaseMs = options.leaseMs ?? 15_000
    const bus = options.bus ?? new EventBus()
    const logger = options.logger ?? SILENT
    const node = options.node ?? randomUUID()
    const protocols = this.#protocols
    const storeTimeoutMs = options.storeTimeoutMs ?? 2_000
    const patienceMs = MAX_AHEAD_MS + storeTimeoutMs
    const { observer } = options
    this.#deadlines = new Deadlines(storeTimeoutMs, observer?.storeCalled?.bind(observer))
    const store = this.#deadlines.bound(options.store ?? memoryStore())
    const leases = new LeaseKeeper({ leases: store.leases, leaseMs, onBeat: () => { this.#beat() } })
    const channel = new NodeChannel({ signals: store.signals, node, logger, onMessage: (message) => { this.#onMessage(message) } })
    const gates = new Gates({
      gates: store.gates,
      ticketMs: leaseMs,
      onTurn: (owner, session, head) => {
        const { node: there } = ticketOf(head)
        if (there !== node && there !== '') channel.send(there, { kind: 'turn', owner, session })
      }
    })
    const { slots, storedBytes } = ownerLimits(options.limits, gates, store.index)
    const following = this.#following = new Following({
      signals: store.signals, presence: store.presence, channel, node, logger, ttlMs: leaseMs, patienceMs, sync: (key) => shelf.sync(key)
    })
    const shelf: Shelf = new Shelf({ bus, store, protocols, following, starting: this.#starting })
    const host: DriverHost = {
      gates,
      leases,
      store,
      patienceMs,
      burst: new Burst(),
      following,
      remoteReaders: (record) => this.#remoteReaders(record),
      announce: ({ key }) => { announceChange(store.signals, key, logger) },
      bindToNode: (record) => this.#bindToNode(record),
      unbindFromNode: ({ key }) => store.nodes.unbind(node, key),
      onIdle: (driver, isClosed) => {
        if (!isClosed) return
        shelf.remove(driver)
        const { key, session } = driver.record
        // With the frames that were made of it: too much rather than too little, until the store is looked at again.
        storedBytes?.add(key.owner, driver.topic.bytes)
        gates.forget(key.owner, session, key.id)
      },
      discard: (topic) => { this.#discard(topic) }
    }
    this.#ownsStore = options.store === undefined
    this.#ownsBus = options.bus === undefined
    this.#parts = { store, bus, logger, node, leases, gates, channel, shelf, host, protocols, observer, slots, storedBytes }
    const admission = this.#admission = new Admission({ kv: store.kv, patienceMs, ttlMs: options.dedupeTtlMs ?? 86_400_000, recordOf: (key) => this.#recordOf(key) })
    this.#resumer = new Resumer(this.#parts)
    this.#stopper = new Stopper(this.#parts, this.#resumer)
    this.#starter = new Starter(this.#parts, admission, this.#stopper)
    const restarter = this.#restarter = new Restarter(this.#parts)
    this.#reaper = new Reaper({
      store,
      gates,
      logger,
      node,
      leaseMs,
      protocols,
      restart: async (taken, takenAt) => await restarter.restart(taken, takenAt),
      onReaped: async (record) => {
        observer?.reaped?.(record)
        await shelf.refresh(record).catch(() => {})
      }
    })
  }

  /** Name of this process among those that share the store. */
  get node (): string {
    return this.#parts.node
  }

  /**
   * Makes a protocol known, so that its lost runs are ended here, or begun again by `restart`; starting a run does the former too. Of
   * several ways to restart, the first that can is taken. @throws AGT_ERR_RUN_PROTOCOL_TAKEN
   */
  register (protocol: RunProtocol, restart?: Restart): void {
    const known = this.#protocols.get(protocol.name)
    if (known !== undefined && known !== protocol) throw new ProtocolTakenError(protocol.name)
    this.#protocols.set(protocol.name, protocol)
    if (restart !== undefined) this.#restarter.add(protocol.name, restart)
    if (this.#isClosing) return
    this.#parts.leases.start()
    this.#parts.channel.open()
  }

  /**
   * Starts a run, or finds the one that this start has already made (R15). Whatever goes wrong afterwards is the run's
   * own terminal. @throws AGT_ERR_STORE_UNAVAILABLE, AGT_ERR_BUS_TOPIC_LIMIT, AGT_ERR_RUN_LIMIT, AGT_ERR_RUN_STORAGE_LIMIT: nothing was started
   */
  async start (spec: RunSpec): Promise<StartResult> {
    if (this.#isClosing) return { kind: 'closing' }
    this.register(spec.protocol)
    const id = randomUUID()
    return await this.#tracked(id, this.#starter.start(spec, id))
  }

  /**
   * What a start under this key would find instead of starting: the run that the same start has made (absent where its log is gone), or that of
   * another start. `undefined`: the start would be a new one. @throws AGT_ERR_STORE_UNAVAILABLE
   */
  async findStarted (owner: Owner, protocol: string, idempotency: Idempotency): Promise<{ readonly kind: 'existing' | 'conflict', readonly run: Run | undefined } | undefined> {
    const found = await this.#admission.find(owner, protocol, idempotency)
    return found === undefined ? undefined : { kind: found.kind, run: await this.#parts.shelf.load(found.record) }
  }

  /** The newest run that a client knows under this id. `session` is needed where ids are unique within a session only. */
  async find (owner: Owner, protocol: string, clientId: string, session?: string): Promise<Run | undefined> {
    const record = await this.#parts.store.index.find(owner, protocol, clientId)
    if (record === undefined) return undefined
    if (session === undefined || record.session === session) return await this.#parts.shelf.load(record)
    return await this.#findInSession(owner, protocol, session, (candidate) => candidate.clientId === clientId)
  }

  /** The run of a session of which an ownership has this epoch: the one that a cursor belongs to. */
  async findByEpoch (owner: Owner, protocol: string, session: string, epoch: string): Promise<Run | undefined> {
    return await this.#findInSession(owner, protocol, session, (record) => isEpochOf(record, epoch))
  }

  /** The newest run of a session. */
  async lastOf (owner: Owner, protocol: string, session: string): Promise<Run | undefined> {
    const { store, shelf } = this.#parts
    for (let gone: string | undefined; ;) {
      const record = await store.index.last(owner, protocol, session)
      if (record === undefined || record.key.id === gone) return undefined
      const run = await shelf.load(record)
      if (run !== undefined) return run
      // A start that has failed meanwhile was none; what has expired is found again.
      gone = record.key.id
    }
  }

  /** An owner's runs, newest first. @throws AGT_ERR_STORE_CURSOR */
  async list (owner: Owner, query: ListQuery): Promise<RunPage> {
    return await this.#parts.store.index.list(owner, query)
  }

  /** What a session waits for, oldest first. */
  async openInterrupts (owner: Owner, protocol: string, session: string): Promise<readonly InterruptRecord[]> {
    return await this.#parts.store.interrupts.open(owner, protocol, session)
  }

  /** Goes on with a waiting run, in the same log (R2). Exactly one of several simultaneous calls resumes it. @throws AGT_ERR_STORE_UNAVAILABLE, AGT_ERR_RUN_LIMIT */
  async resume (run: Run, spec: ResumeSpec): Promise<ResumeResult> {
    if (this.#isClosing) return { kind: 'closing' }
    return await this.#tracked(randomUUID(), this.#resumer.resume(run, spec))
  }

  /**
   * Stops a run that is executed, here or on another node, or that waits, by the protocol's verb; resolves when it is over. One that
   * has ended stays as it ended. @throws AGT_ERR_STORE_UNAVAILABLE also when another node neither ends the run nor loses it
   */
  async stop (run: Run, options: StopOptions = {}): Promise<void> {
    const cause: RemoteCause = { kind: 'cancelled', ...options.message !== undefined && { message: options.message } }
    await this.#stopper.stop(run.record.key, cause)
  }

  /** Removes a run that has ended, with its log; answers false for one that has not. Its id is free again. @throws AGT_ERR_STORE_UNAVAILABLE */
  async delete (run: Run): Promise<boolean> {
    const { store, bus } = this.#parts
    const record = await store.runs.get(run.record.key)
    if (record !== undefined && !isEnded(record.state)) return false
    await store.runs.delete(run.record.key)
    bus.drop(run.topic.key)
    return true
  }

  /** Stops what runs in a session, on whatever node, or that run alone; works without any subscriber. @throws as {@link stop} does */
  async stopSession (owner: Owner, protocol: string, session: string, clientRunId?: string): Promise<'stopped' | 'unknown'> {
    return await this.#stopper.stopSession(owner, protocol, session, { kind: 'cancelled' }, clientRunId)
  }

  /** Runs that this node executes or that wait here, counted now. */
  census (): Census {
    return { ...countRuns(this.#parts.shelf.drivers), logBytes: this.#parts.bus.bytes }
  }

  /** Whether starts are refused, because of `drain()` or `close()`. */
  get isClosing (): boolean {
    return this.#isClosing
  }

  /** Takes no more starts and resumes from now on; what runs goes on. For a server that still answers while its clients are sent elsewhere. */
  drain (): void {
    this.#isClosing = true
  }

  /**
   * Takes no more starts and interrupts what runs, at once or what has not finished by then; resolves when every run has told its
   * terminal, or after `timeoutMs` and one more deadline of the store, when the rest is left to other nodes. Waiting runs stay as they are, without the
   * instances that were kept for them. A second call waits for the first.
   */
  close ({ timeoutMs = 5_000, running = 'interrupt' }: CloseOptions = {}): Promise<void> {
    this.#closed ??= this.#close({ timeoutMs, running })
    return this.#closed
  }

  async #close ({ timeoutMs, running }: Required<CloseOptions>): Promise<void> {
    this.#isClosing = true
    await endAll(this.#parts, this.#restarter, this.#starting, { timeoutMs, running })
    this.#parts.leases.close()
    this.#parts.channel.close()
    this.#following.close()
    if (this.#ownsStore) await this.#parts.store.close()
    this.#deadlines.close()
    // Readers get the last frames on the next tick.
    await new Promise<void>((resolve) => { setImmediate(resolve) })
    if (this.#ownsBus) this.#parts.bus.close()
  }

  async #findInSession (owner: Owner, protocol: string, session: string, matches: (record: RunRecord) => boolean): Promise<Run | undefined> {
    let cursor: string | undefined
    do {
      const query: ListQuery = { protocol, session, limit: 100, ...cursor !== undefined && { cursor } }
      const page = await this.#parts.store.index.list(owner, query)
      const record = page.runs.find(matches)
      if (record !== undefined) return await this.#parts.shelf.load(record)
      cursor = page.cursor
    } while (cursor !== undefined)
    return undefined
  }

  /** Remembers a start or resume that is under way: a duplicate and `close` wait for it. */
  async #tracked<T> (id: string, task: Promise<T>): Promise<T> {
    this.#starting.set(id, task)
    try {
      return await task
    } finally {
      this.#starting.delete(id)
    }
  }

  async #recordOf (key: RunKey): Promise<RunRecord | undefined> {
    await this.#starting.get(key.id)?.catch(() => {})
    return await this.#parts.store.runs.get(key)
  }

  #onMessage (message: NodeMessage): void {
    const { shelf, gates } = this.#parts
    switch (message.kind) {
      case 'follow': shelf.driver(message.run.id)?.audience.join(message.node); break
      case 'leave': shelf.driver(message.run.id)?.audience.leave(message.node); break
      case 'stop': this.#stopper.stopHere(message.run, message.cause); break
      case 'turn': gates.wake(message.owner, message.session)
    }
  }

  #beat (): void {
    const { gates, store, node, leases, channel, shelf } = this.#parts
    gates.beat()
    channel.open()
    for (const driver of shelf.drivers) driver.audience.beat()
    this.#following.beat()
    // A beat that fails is followed by the next one; a node that can not beat for a lease is rightly taken for dead.
    store.nodes.beat(node, leases.leaseMs).catch(() => {})
    // What is lost now is for those to end, or to begin again, who stay.
    if (!this.#isClosing) this.#reaper.sweep()
  }

  async #bindToNode ({ key }: RunRecord): Promise<void> {
    const { store, node, leases } = this.#parts
    await store.nodes.beat(node, leases.leaseMs)
    await store.nodes.bind(node, key)
  }

  async #remoteReaders ({ key }: RunRecord): Promise<readonly string[]> {
    const { store, node } = this.#parts
    try {
      const nodes = await store.presence.nodes(key)
      return nodes.filter((other) => other !== node)
    } catch {
      // Nobody can say so: a run that nobody is known to read is not kept going on a guess.
      return []
    }
  }

  #discard (topic: Topic): void {
    // The caller's last frames are written on the next tick.
    setImmediate(() => { this.#parts.bus.drop(topic.key) })
  }
}
