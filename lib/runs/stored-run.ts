import { type Topic } from '../bus/index.ts'
import { type RunRecord } from '../stores/index.ts'
import { deferred } from './deferred.ts'
import { Connections, type ConnectOptions, type Connection } from './disconnect.ts'
import { type FoldKeeper } from './fold.ts'
import { type RunProtocol, type Snapshot } from './protocol.ts'
import { type Run } from './run.ts'

/** A run that this node does not execute, as the store holds it. Made of its record; `update` it once its events are in the topic. */
export class StoredRun implements Run {
  readonly topic: Topic
  readonly fold: FoldKeeper | undefined
  readonly #closed = deferred<RunRecord>()
  readonly #settled = deferred<RunRecord>()
  readonly #connections = new Connections('continue', { onAbandoned: () => {} })
  readonly #protocol: RunProtocol
  #record: RunRecord

  constructor (protocol: RunProtocol, record: RunRecord, topic: Topic, fold: FoldKeeper | undefined) {
    this.#protocol = protocol
    this.#record = record
    this.topic = topic
    this.fold = fold
  }

  get record (): RunRecord { return this.#record }
  get ended (): Promise<RunRecord> { return this.#closed.promise }

  settled (): Promise<RunRecord> {
    return this.#settled.promise
  }

  connect (options?: ConnectOptions): Connection {
    return this.#connections.open(options)
  }

  snapshot (): Snapshot | undefined {
    if (this.fold === undefined) return undefined
    const snapshot = this.fold.snapshot(this.topic.stored, this.#record)
    return { epoch: this.topic.epochAt(snapshot.seq), ...snapshot }
  }

  /** The store holds a newer record; call it after its events are in the topic. */
  update (record: RunRecord): void {
    this.#record = record
    if (!isIdle(record)) return
    this.#settled.resolve(record)
    if (!isClosed(this.#protocol, record)) return
    this.topic.end()
    this.#closed.resolve(record)
  }
}

/** Whether nothing more will be appended to the run's log. */
export function isClosed (protocol: RunProtocol, record: RunRecord): boolean {
  return isIdle(record) && (record.state !== 'waiting' || protocol.resumesIn === 'session')
}

function isIdle (record: RunRecord): boolean {
  return record.state !== 'pending' && record.state !== 'running'
}
