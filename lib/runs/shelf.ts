import { type EventBus, type Topic } from '../bus/index.ts'
import { ownerText, type Owner, type RunKey, type RunRecord, type Store } from '../stores/index.ts'
import { logEvent } from './barrier.ts'
import { type Driver } from './driver.ts'
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
    if (driver !== undefined) return Promise.resolve(driver)
    const loading = this.#loading.get(id)
    if (loading !== undefined) return loading
    const task = this.#load(record).finally(() => { this.#loading.delete(id) })
    this.#loading.set(id, task)
    return task
  }

  /** A run that is not executed here was changed by us: its readers here see it. */
  async refresh (record: RunRecord): Promise<void> {
    if (this.#atHand(record.key) !== undefined) await this.load(record)
  }

  #atHand (key: RunKey): Driver | StoredRun | undefined {
    const topic = this.#options.bus.find(topicKey(key.id))
    return topic === undefined ? undefined : this.#byTopic.get(topic)
  }

  async #load (record: RunRecord): Promise<Run | undefined> {
    const known = this.#atHand(record.key)
    if (known instanceof StoredRun) {
      if (known.record.version < record.version) await this.#follow(known, record)
      return known
    }
    if (known !== undefined) return known
    return this.#read(record)
  }

  async #read (record: RunRecord): Promise<Run | undefined> {
    const { store, bus, protocols } = this.#options
    const protocol = protocols.get(record.key.protocol)
    if (protocol === undefined) return undefined
    const from = protocol.fold === undefined ? undefined : await store.log.loadFold(record.key)
    const page = await store.log.read(record.key, 0, 1)
    if (page === undefined) return undefined
    const fold = protocol.fold === undefined ? undefined : new FoldKeeper(protocol.fold, record, from)
    const topic = bus.topic(topicKey(record.key.id), {
      epoch: record.epoch,
      firstSeq: page.oldest,
      watermark: 'manual',
      // What the store keeps is kept here too, as long as the bus has room.
      replay: { maxEvents: Number.MAX_SAFE_INTEGER, maxBytes: Number.MAX_SAFE_INTEGER }
    })
    const run = new StoredRun(protocol, record, topic, fold)
    await this.#follow(run, record)
    this.#byTopic.set(topic, run)
    return run
  }

  /** Brings a stored run up to what the store holds. */
  async #follow (run: StoredRun, record: RunRecord): Promise<void> {
    const { store } = this.#options
    const { topic, fold } = run
    for (;;) {
      const page = await store.log.read(record.key, topic.last, PAGE)
      if (page === undefined || page.events.length === 0) break
      for (const { data, event, level } of page.events) {
        const seq = topic.append({ data, event, level })
        fold?.note(logEvent(seq, data, event, level))
      }
      topic.markStored(topic.last)
    }
    run.update(record)
  }
}

/** Where a run's log stands in the bus, apart from any topic of a user's. */
export function topicKey (id: string): string {
  return `\u0000run ${id}`
}

function sessionText (owner: Owner, session: string): string {
  return ownerText(owner) + session
}
