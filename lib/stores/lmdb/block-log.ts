import type { EventBlock } from '../../bus/index.ts'
import type { LogEvent, LogLimits, LogPage } from '../event-log.ts'
import { isTrimmed } from '../rules/log.ts'
import { decodeBlock, encodeBlock } from './block-codec.ts'
import { HASH_BYTES, PART, partKey } from './keys.ts'
import type { RunMeta } from './run-meta.ts'
import type { Table } from './table.ts'

/** Where a block's key says what it holds: first sequence, number of events, bytes. */
const SEQ_AT = 2 + HASH_BYTES
const SEQ_BYTES = 6
const COUNT_AT = SEQ_AT + SEQ_BYTES
const BYTES_AT = COUNT_AT + 4
const KEY_BYTES = BYTES_AT + 4

/** A block by its key. */
interface BlockHead {
  readonly firstSeq: number
  readonly lastSeq: number
  readonly bytes: number
}

/**
 * The log of a run: one entry an append, keyed by run and first sequence, so that reading is one scan of neighbours. What trimming has to
 * know of a block stands in its key.
 */
export class BlockLog {
  readonly #table: Table
  readonly #maxLogBytes: number

  constructor (table: Table, maxLogBytes: number) {
    this.#table = table
    this.#maxLogBytes = maxLogBytes
  }

  /** Adds a block that follows the log, and keeps the limits. The metadata as they are then, for the caller to write. */
  append (run: Buffer, meta: RunMeta, block: EventBlock, limits: LogLimits | undefined): RunMeta {
    const value = encodeBlock(block)
    const head = { firstSeq: block.firstSeq, lastSeq: block.lastSeq, bytes: value.length }
    this.#table.put(blockKey(run, head), value)
    const isFirst = meta.last < meta.oldest
    return this.#trimmed(run, {
      ...meta,
      last: head.lastSeq,
      oldest: isFirst ? head.firstSeq : meta.oldest,
      second: !isFirst && meta.second === 0 ? head.firstSeq : meta.second,
      logBytes: meta.logBytes + head.bytes
    }, limits)
  }

  read (run: Buffer, { oldest, last }: RunMeta, after: number, limit: number): LogPage {
    const events: LogEvent[] = []
    const first = Math.max(after + 1, oldest)
    if (first > last) return { oldest, last, events }
    for (const { key, value } of this.#table.entries({ from: this.#keyAtOrBefore(run, first), to: seqKey(run, last + 1) })) {
      const { firstSeq, lastSeq } = headOf(key)
      const from = Math.max(firstSeq, first)
      events.push(...decodeBlock(value, firstSeq, from, Math.min(lastSeq, from + limit - events.length - 1)))
      if (events.length >= limit) break
    }
    return { oldest, last, events }
  }

  #keyAtOrBefore (run: Buffer, seq: number): Buffer {
    const [key] = this.#table.keys({ from: partKey(run, PART.block), to: seqKey(run, seq + 1), isReverse: true, limit: 1 })
    return key ?? partKey(run, PART.block)
  }

  #trimmed (run: Buffer, meta: RunMeta, limits: LogLimits | undefined): RunMeta {
    if (meta.second === 0 || !isTrimmed(meta.second - 1, edge(meta), limits, this.#maxLogBytes)) return meta
    const dropped: Buffer[] = []
    let { logBytes, oldest, second } = meta
    for (const key of this.#table.keys({ from: seqKey(run, meta.oldest), to: seqKey(run, meta.last + 1) })) {
      const head = headOf(key)
      if (!isTrimmed(head.lastSeq, { last: meta.last, bytes: logBytes }, limits, this.#maxLogBytes)) {
        oldest = head.firstSeq
        second = head.lastSeq === meta.last ? 0 : head.lastSeq + 1
        break
      }
      dropped.push(key)
      logBytes -= head.bytes
    }
    for (const key of dropped) this.#table.remove(key)
    return { ...meta, logBytes, oldest, second }
  }
}

function edge ({ last, logBytes }: RunMeta): { readonly last: number, readonly bytes: number } {
  return { last, bytes: logBytes }
}

/** The first key that a block which begins at this sequence can have. */
function seqKey (run: Buffer, seq: number): Buffer {
  const key = Buffer.allocUnsafe(SEQ_AT + SEQ_BYTES)
  partKey(run, PART.block).copy(key)
  key.writeUIntBE(seq, SEQ_AT, SEQ_BYTES)
  return key
}

function blockKey (run: Buffer, { firstSeq, lastSeq, bytes }: BlockHead): Buffer {
  const key = Buffer.allocUnsafe(KEY_BYTES)
  partKey(run, PART.block).copy(key)
  key.writeUIntBE(firstSeq, SEQ_AT, SEQ_BYTES)
  key.writeUInt32BE(lastSeq - firstSeq + 1, COUNT_AT)
  key.writeUInt32BE(bytes, BYTES_AT)
  return key
}

function headOf (key: Buffer): BlockHead {
  const firstSeq = key.readUIntBE(SEQ_AT, SEQ_BYTES)
  return { firstSeq, lastSeq: firstSeq + key.readUInt32BE(COUNT_AT) - 1, bytes: key.readUInt32BE(BYTES_AT) }
}
