import { type Topic } from '../bus/index.ts'
import { type LogEvent, type RunRecord } from '../stores/index.ts'
import { deferred } from './deferred.ts'
import { type ConnectOptions, type Connection } from './disconnect.ts'
import { epochOf } from './epoch.ts'
import { type FoldKeeper } from './fold.ts'
import { type Followed, type Following } from './following.ts'
import { type RunProtocol, type Snapshot } from './protocol.ts'
import { Readers } from './readers.ts'
import { type Run } from './run.ts'

/**
 * A run that this node does not execute, as the store holds it. Made of its record; `update` it once its events are in the topic. While
 * it has readers it follows what its owner stores.
 */
export class StoredRun implements Run, Followed {
  readonly topic: Topic
  readonly fold: FoldKeeper | undefined
  readonly #closed = deferred<RunRecord>()
  readonly #readers: Readers
  readonly #protocol: RunProtocol
  #settled = deferred<RunRecord>()
  #record: RunRecord

  constructor (protocol: RunProtocol, record: RunRecord, topic: Topic, fold: FoldKeeper | undefined, following: Following) {
    this.#protocol = protocol
    this.#record = record
    this.topic = topic
    this.fold = fold
    this.#readers = new Readers(this, following, true, () => {})
  }

  get record (): RunRecord { return this.#readers.successor?.record ?? this.#record }
  get ended (): Promise<RunRecord> { return this.#closed.promise }

  settled (): Promise<RunRecord> {
    return this.#readers.successor?.settled() ?? this.#settled.promise
  }

  connect (options?: ConnectOptions): Connection {
    return this.#readers.open(options)
  }

  snapshot (): Snapshot | undefined {
    if (this.#readers.successor !== undefined) return this.#readers.successor.snapshot()
    if (this.fold === undefined) return undefined
    const snapshot = this.fold.snapshot(this.topic.stored, this.#record)
    return { epoch: this.topic.epochAt(snapshot.seq), ...snapshot }
  }

  take (fence: number, events: readonly LogEvent[]): boolean {
    const { topic } = this
    const first = events[0]?.seq ?? 0
    if (this.#readers.successor !== undefined || topic.isEnded || topic.isClosed || first > topic.last + 1) return false
    const fresh = events.filter(({ seq }) => seq > topic.last)
    if (fresh.length === 0) return true
    // Whose they are is known when the record is.
    if (fence !== this.#record.fence) return false
    const epoch = epochOf(this.#record, fence)
    if (topic.epoch !== epoch) {
      if (this.#record.firstSeqByFence.at(-1)?.[1] !== topic.last + 1) return false
      topic.renew(epoch)
    }
    for (const event of fresh) topic.append(event)
    this.fold?.note(fresh)
    topic.markStored(topic.last)
    return true
  }

  /** The store holds a newer record; call it after its events are in the topic. */
  update (record: RunRecord): void {
    const wasIdle = isIdle(this.#record)
    this.#record = record
    if (!isIdle(record)) {
      if (wasIdle) this.#settled = deferred()
      return
    }
    this.#settled.resolve(record)
    if (!isClosed(this.#protocol, record)) return
    this.#readers.elsewhere(false)
    this.topic.end()
    this.#closed.resolve(record)
  }

  /** The run goes on as `run`, on this node: readers are its readers, and who waits for this one waits for that. */
  forward (run: Run): void {
    this.#readers.forward(run)
    const settled = this.#settled
    run.settled().then((record) => { settled.resolve(record) }, () => {})
    run.ended.then((record) => {
      this.#record = record
      this.#closed.resolve(record)
    }, () => {})
  }
}

/** Whether nothing more will be appended to the run's log. */
export function isClosed (protocol: RunProtocol, record: RunRecord): boolean {
  return isIdle(record) && (record.state !== 'waiting' || protocol.resumesIn === 'session')
}

function isIdle (record: RunRecord): boolean {
  return record.state !== 'pending' && record.state !== 'running'
}
