import type { RunKey } from '../run-key.ts'
import { isEnded, type RunRecord } from '../run-store.ts'
import { deepFreeze } from '../rules/frozen-json.ts'
import { InterruptList } from '../rules/interrupt-list.ts'
import type { HeldLease } from '../rules/lease.ts'
import { changed, endsLease, ownFirstOf } from '../rules/record.ts'
import type { InterruptRecord } from '../interrupts.ts'
import { jsonBytes, jsonOf } from './json-bytes.ts'
import { hashOf, HASH_BYTES, keyOf, ownedHashOf, PART, partKey, runHashOf, TAG } from './keys.ts'
import type { ListTable } from './list-table.ts'
import type { ResolvedLmdbOptions } from './options.ts'
import { decodeMeta, encodeMeta, NEW_META, type RunMeta, sizeOf } from './run-meta.ts'
import type { Table } from './table.ts'
import type { Usage } from './usage.ts'

const NOTHING = Buffer.alloc(0)

/** A record with what the store remembers of its changes. */
export interface StoredRecord {
  readonly record: RunRecord
  readonly createOp: string
  readonly lastOp: string | undefined
}

/** A run that is there. */
export interface FoundRun {
  readonly hash: Buffer
  readonly meta: RunMeta
}

/** Everything under run keys, and the indexes that follow it. What writes is called within a transaction. */
export class RunTable {
  readonly table: Table
  readonly usage: Usage
  readonly lists: ListTable
  readonly #options: ResolvedLmdbOptions

  constructor (table: Table, usage: Usage, lists: ListTable, options: ResolvedLmdbOptions) {
    this.table = table
    this.usage = usage
    this.lists = lists
    this.#options = options
  }

  get now (): number { return this.#options.now() }

  /** The run, unless its time has come. */
  find (key: RunKey): FoundRun | undefined {
    return this.findHash(runHashOf(key))
  }

  findHash (hash: Buffer): FoundRun | undefined {
    const bytes = this.table.get(partKey(hash, PART.meta))
    const meta = bytes && decodeMeta(bytes)
    return meta === undefined || meta.goneAt <= this.now ? undefined : { hash, meta }
  }

  /** Whether a run is kept, also one whose time has come. */
  exists (hash: Buffer): boolean {
    return this.table.get(partKey(hash, PART.meta)) !== undefined
  }

  /** The record of a run that was found. */
  record ({ hash }: FoundRun): StoredRecord {
    return deepFreeze(jsonOf<StoredRecord>(this.table.get(partKey(hash, PART.record)) as Buffer)) // written with the metadata
  }

  /** Writes a new run's record. */
  add (hash: Buffer, record: RunRecord, createOp: string): FoundRun {
    return this.#write({ hash, meta: NEW_META }, { record, createOp, lastOp: undefined })
  }

  /** Puts a changed record in place, one version on. A state that is not active ends the lease. */
  change (run: FoundRun, stored: StoredRecord, change: Partial<RunRecord>, op: string | undefined): { readonly run: FoundRun, readonly record: RunRecord } {
    const record = changed(stored.record, change, this.now)
    if (endsLease(change)) this.setLease(run, record.key, undefined)
    return { run: this.#write(run, { record, createOp: stored.createOp, lastOp: op }), record }
  }

  /** Keeps metadata that were changed; counts what they say is kept. */
  setMeta ({ hash, meta }: FoundRun, next: RunMeta): FoundRun {
    this.usage.add(sizeOf(next) - sizeOf(meta))
    this.table.put(partKey(hash, PART.meta), encodeMeta(next))
    return { hash, meta: next }
  }

  lease ({ hash }: FoundRun): HeldLease | undefined {
    const bytes = this.table.get(partKey(hash, PART.lease))
    return bytes && jsonOf<HeldLease>(bytes)
  }

  setLease (run: FoundRun, key: RunKey, lease: HeldLease | undefined): void {
    const { hash } = run
    const before = this.lease(run)
    if (before !== undefined) this.table.remove(leaseKey(key.protocol, before.expiresAt, hash))
    if (lease === undefined) {
      if (before !== undefined) this.table.remove(partKey(hash, PART.lease))
      return
    }
    this.table.put(partKey(hash, PART.lease), jsonBytes(lease))
    this.table.put(leaseKey(key.protocol, lease.expiresAt, hash), jsonBytes(key))
  }

  interrupts ({ hash, meta }: FoundRun): InterruptList {
    const bytes = meta.interruptBytes === 0 ? undefined : this.table.get(partKey(hash, PART.interrupts))
    return new InterruptList(bytes === undefined ? [] : deepFreeze(jsonOf<InterruptRecord[]>(bytes)))
  }

  /** Keeps interrupts that were changed, and whether anybody may answer them. */
  setInterrupts (run: FoundRun, { key, session }: RunRecord, list: InterruptList): FoundRun {
    const bytes = jsonBytes(list.kept)
    this.table.put(partKey(run.hash, PART.interrupts), bytes)
    const waiting = keyOf(TAG.waiting, sessionHash(key, session), run.hash)
    if (list.isOpen) this.table.put(waiting, NOTHING)
    else this.table.remove(waiting)
    return this.setMeta(run, { ...run.meta, interruptBytes: bytes.length })
  }

  /** The node that a run ends with. */
  node ({ hash }: FoundRun): string | undefined {
    const bytes = this.table.get(partKey(hash, PART.node))
    return bytes && jsonOf<string>(bytes)
  }

  setNode (run: FoundRun, key: RunKey, node: string | undefined): void {
    const { hash } = run
    const before = this.node(run)
    if (before === node) return
    if (before !== undefined) this.table.remove(keyOf(TAG.bound, hashOf(before), hash))
    if (node === undefined) {
      this.table.remove(partKey(hash, PART.node))
      return
    }
    this.table.put(partKey(hash, PART.node), jsonBytes(node))
    this.table.put(keyOf(TAG.bound, hashOf(node), hash), jsonBytes(key))
  }

  #write (run: FoundRun, { record, createOp, lastOp }: StoredRecord): FoundRun {
    const { hash, meta } = run
    const bytes = jsonBytes({ record, createOp, lastOp })
    this.table.put(partKey(hash, PART.record), bytes)
    const endedAt = isEnded(record.state) ? Math.min(meta.endedAt, this.now) : Infinity
    const next: RunMeta = {
      ...meta,
      state: record.state,
      fence: record.fence,
      ownFirst: ownFirstOf(record),
      endedAt,
      goneAt: record.expiresAt ?? endedAt + this.#options.endedTtlMs,
      recordBytes: bytes.length
    }
    if (next.goneAt !== meta.goneAt) {
      if (meta.goneAt !== Infinity) this.table.remove(keyOf(TAG.ended, meta.goneAt, hash))
      if (next.goneAt !== Infinity) this.table.put(keyOf(TAG.ended, next.goneAt, hash), NOTHING)
    }
    if (meta.recordBytes === 0 || next.state !== meta.state) {
      if (meta.recordBytes > 0) this.lists.setState(record, hash, meta.state, false)
      this.lists.setState(record, hash, next.state, true)
    }
    // What has ended depends on nobody any more.
    if (isEnded(next.state) && !isEnded(meta.state)) this.setNode(run, record.key, undefined)
    return this.setMeta(run, next)
  }
}

/** The key under which a lease is found when it has run out. */
export function leaseKey (protocol: string, expiresAt: number, run: Buffer): Buffer {
  return keyOf(TAG.lease, hashOf(protocol), expiresAt, run)
}

/** The session that a run waits for. */
export function sessionHash ({ owner, protocol }: Pick<RunKey, 'owner' | 'protocol'>, session: string): Buffer {
  return ownedHashOf('session', owner, protocol, session)
}

/** The run that a key of an index ends with. */
export function runOf (key: Buffer): Buffer {
  return key.subarray(key.length - HASH_BYTES)
}
