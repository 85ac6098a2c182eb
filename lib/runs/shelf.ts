import { type EventBus, type Topic } from '../bus/index.ts'
import { isEnded, ownerText, type LogEvents, type Owner, type RunKey, type RunRecord, type Store } from '../stores/index.ts'
import { type Driver } from './driver.ts'
import { epochOf } from './epoch.ts'
import { type Following } from './following.ts'
import { FoldKeeper } from './fold.ts'
import { type RunProtocol } from './protocol.ts'
import { type Run } from './run.ts'
import { StoredRun } from './stored-run.ts'

/** Events read from the store at once. */
const PAGE = 1_000

/** What the shelf works with. */
export interface ShelfOptions {
  readonly bus: EventBus
  readonly store: Store
  readonly protocols: ReadonlyMap<string, RunProtocol>
  /** Keeps runs of other nodes up to date while they are read. */
  readonly following: Following
  /** Starts that are under way here, by the run's id. */
  readonly starting: ReadonlyMap<string, Promise<unknown>>
}

/** The runs that this node has at hand: those it executes or that wait here, and those read from the store while their topic lasts. */
export class Shelf {
  readonly #options: ShelfOptions
  readonly #drivers = new Map<string, Driver>()
  readonly #sessions = new Map<string, Set<Driver>>()
  // The topic's own time to live decides how long an ended run stays at hand.
  readonly #byTopic = new WeakMap<Topic, Driver | StoredRun>()
  readonly #loading = new Map<string, Promise<Run | undefined>>()

  constructor (options: ShelfOptions) {
    this.#options = options
  }

  /** Runs that are executed or wait here. */
  get drivers (): Iterable<Driver> {
    return this.#drivers.values()
  }

  driver (id: string): Driver | undefined {
    return this.#drivers.get(id)
  }

  /** Runs of a session that are executed or wait here. */
  inSession (owner: Owner, session: string): readonly Driver[] {
    return [...this.#sessions.get(sessionText(owner, session)) ?? []]
  }

  add (driver: Driver): void {
    const { key, session } = driver.record
    const before = this.#byTopic.get(driver.topic)
    if (before instanceof StoredRun) before.forward(driver)
    this.#drivers.set(key.id, driver)
    this.#byTopic.set(driver.topic, driver)
    const text = sessionText(key.owner, session)
    const others = this.#sessions.get(text)
    if (others === undefined) this.#sessions.set(text, new Set([driver]))
    else others.add(driver)
  }

  /** The run is closed: it stays at hand as long as its topic. */
  remove (driver: Driver): void {
    const { key, session } = driver.record
    this.#drivers.delete(key.id)
    const text = sessionText(key.owner, session)
    const others = this.#sessions.get(text)
    others?.delete(driver)
    if (others?.size === 0) this.#sessions.delete(text)
  }

  /** The run of a record that was just read: from memory if it is at hand, else from the store. `undefined` when it is gone. */
  load (record: RunRecord): Promise<Run | undefined> {
    const { id } = record.key
    const driver = this.#drivers.get(id)
    if (driver !== undefined && (driver.isReserved || driver.record.version >= record.version)) return Promise.resolve(driver)
    const loading = this.#loading.get(id)
    if (loading !== undefined) return loading
    const task = this.#load(record).finally(() => { this.#loading.delete(id) })
    this.#loading.set(id, task)
    return task
  }

  /** A run that is not executed here was changed: its readers here see it. */
  async refresh (record: RunRecord): Promise<void> {
    if (this.#atHand(record.key) !== undefined) await this.load(record)
  }

  /** Brings a run that is read here up to what the store holds, and gives it as it is at hand then. Rejects when the store is away. */
  async sync (key: RunKey): Promise<Run | undefined> {
    const { store, bus } = this.#options
    const record = await store.runs.get(key)
    if (record !== undefined) return await this.load(record)
    // It has expired, or was deleted: there is nothing more to read.
    if (this.#drivers.get(key.id)?.isReserved !== true) bus.drop(topicKey(key.id))
    return undefined
  }

  #atHand (key: RunKey): Driver | StoredRun | undefined {
    const topic = this.#options.bus.find(topicKey(key.id))
    return topic === undefined ? undefined : this.#byTopic.get(topic)
  }

  async #load (record: RunRecord): Promise<Run | undefined> {
    const { id } = record.key
    const starting = this.#options.starting.get(id)
    if (starting !== undefined) {
      // It has a topic and no driver yet: who read the store into that topic would tell everything twice.
      await starting.catch(() => {})
      const started = this.#drivers.get(id)
      if (started !== undefined) return started
    }
    const waiting = this.#drivers.get(id)
    if (waiting !== undefined) return await this.replace(waiting, record)
    const known = this.#atHand(record.key)
    if (known === undefined) return await this.#read(record)
    if (!(known instanceof StoredRun)) {
      if (known.isGivenUp) {
        // Its last frames leave with this tick, and its topic then: what the store holds may be something else.
        await new Promise<void>((resolve) => { setImmediate(resolve) })
        return await this.#read(record)
      }
      if (known.record.version < record.version) known.adopt(record)
      return known
    }
    // Events are added to what goes on without a change of its record.
    if (known.topic.isEnded || await this.#follow(known, record)) return known
    this.#options.bus.drop(known.topic.key)
    const read = await this.#read(record)
    if (read !== undefined) known.forward(read)
    return read
  }

  /** A run that waited here was taken up by another node, or is to be looked at anew: it goes on where it stood. */
  async replace (waiting: Driver, record: RunRecord): Promise<Run | undefined> {
    const { bus, following } = this.#options
    this.remove(waiting)
    const { protocol, topic, fold } = waiting
    const run = new StoredRun(protocol, waiting.record, topic, fold, following)
    waiting.forward(run)
    // A barrier of unknown effect took its fold along.
    const isWhole = !topic.isEnded && (fold !== undefined || protocol.fold === undefined)
    if (isWhole && await this.#follow(run, record)) {
      this.#byTopic.set(topic, run)
      return run
    }
    bus.drop(topic.key)
    const read = await this.#read(record)
    if (read !== undefined) waiting.forward(read)
    return read
  }

  async #read (record: RunRecord): Promise<Run | undefined> {
    const { store, bus, protocols, following } = this.#options
    const protocol = protocols.get(record.key.protocol)
    if (protocol === undefined) return undefined
    const from = protocol.fold === undefined ? undefined : await store.log.loadFold(record.key)
    const page = await store.log.read(record.key, 0, 1)
    if (page === undefined) return undefined
    // What was trimmed before it was folded in can not be told in any way.
    const isFoldable = page.oldest <= (from?.seq ?? 0) + 1
    const fold = protocol.fold === undefined || !isFoldable ? undefined : new FoldKeeper(protocol.fold, record, from)
    const topic = bus.topic(topicKey(record.key.id), {
      epoch: record.epoch,
      firstSeq: page.oldest,
      watermark: 'manual',
      // What the store keeps is kept here too, as long as the bus has room.
      replay: { maxEvents: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER }
    })
    const run = new StoredRun(protocol, record, topic, fold, following)
    let isWhole = false
    try {
      isWhole = await this.#follow(run, record)
    } finally {
      if (isWhole) this.#byTopic.set(topic, run)
      else bus.drop(topic.key)
    }
    return isWhole ? run : undefined
  }

  /** Brings a stored run up to what the store holds; false when it is gone, or not what was read before. */
  async #follow (run: StoredRun, record: RunRecord): Promise<boolean> {
    const { store } = this.#options
    const { topic, fold } = run
    for (;;) {
      if (hasDiverged(topic, record)) return false
      const page = await store.log.read(record.key, topic.last, PAGE)
      if (page === undefined) return false
      if (page.events.length === 0) break
      // Who has written them is in a record that was read afterwards; nobody writes once it has ended.
      const writers = isEnded(record.state) ? record : await store.runs.get(record.key)
      // Somebody may have told the same, or the end, meanwhile.
      if (topic.isEnded) return true
      if (writers === undefined || hasDiverged(topic, writers)) return false
      appendStored(topic, page.events, writers)
      fold?.note(page.events)
      topic.markStored(topic.last)
    }
    if (run.record.version <= record.version) run.update(record)
    return true
  }
}

/** Whether another owner has numbered on from before where this log ends: a backend that was restarted had lost what is here. */
function hasDiverged (topic: Topic, record: RunRecord): boolean {
  return record.firstSeqByFence.some(([fence, firstSeq], index, all) => {
    // An ownership that has written nothing left no trace.
    if (all[index + 1]?.[1] === firstSeq || firstSeq < topic.oldest || firstSeq > topic.last) return false
    return topic.epochAt(firstSeq) !== epochOf(record, fence)
  })
}

/** Appends events of the store that are not there yet, each in the life of the ownership that wrote it. */
function appendStored (topic: Topic, events: LogEvents, record: RunRecord): void {
  const ownerships = [...record.firstSeqByFence]
  for (const event of events) {
    if (event.seq <= topic.last) continue
    for (let next = ownerships[0]; next !== undefined && next[1] <= event.seq; next = ownerships[0]) {
      const [fence, firstSeq] = next
      topic.renew(epochOf(record, fence), firstSeq)
      ownerships.shift()
    }
    topic.append(event)
  }
}

/** Where a run's log stands in the bus, apart from any topic of a user's. */
export function topicKey (id: string): string {
  return `\u0000run ${id}`
}

function sessionText (owner: Owner, session: string): string {
  return ownerText(owner) + session
}
