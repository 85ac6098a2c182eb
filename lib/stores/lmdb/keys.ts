import { hash } from 'node:crypto'
import { ownerText, type Owner, type RunKey, runKeyText } from '../run-key.ts'

/** Bytes of a hashed id. */
export const HASH_BYTES = 20

/**
 * The first byte of every key: what the entry is. Ids that somebody chose never enter a key (R20), only hashes of them, so that
 * any id fits and none is found by looking at keys.
 */
export const TAG = {
  /** Run, then {@link PART}: everything of one run lies together. */
  run: 0x10,
  /** When it is gone, then its run: runs that have ended, the next to go first. */
  ended: 0x20,
  /** Protocol, expiry, run. */
  lease: 0x21,
  /** Node, run. */
  bound: 0x22,
  /** Session, run: runs that somebody may answer. */
  waiting: 0x23,
  /** List, time of creation, run. */
  list: 0x24,
  /** Small values, by their own key. */
  value: 0x30,
  /** When a node is to be taken for dead, by its name. */
  node: 0x31,
  /** Queues, by session. */
  gate: 0x32,
  /** When, then the key of what runs out. */
  due: 0x40,
  /** Facts about the data as a whole. */
  about: 0x7f
} as const

/** The second part of a run's keys. */
export const PART = {
  meta: 0,
  record: 1,
  lease: 2,
  node: 3,
  fold: 4,
  interrupts: 5,
  presence: 6,
  entry: 7,
  /** Last, and behind it the blocks of its log. */
  block: 8
} as const

/** A hash of a text, for a key. */
export function hashOf (text: string): Buffer {
  return hash('sha256', text, 'buffer').subarray(0, HASH_BYTES)
}

/** The hash of a run's address. */
export function runHashOf (key: RunKey): Buffer {
  return hashOf(runKeyText(key))
}

/** The hash of something that belongs to an owner. */
export function ownedHashOf (kind: string, owner: Owner, ...ids: readonly string[]): Buffer {
  return hashOf(JSON.stringify([kind, ownerText(owner), ...ids]))
}

/** A key: its tag and what follows. Numbers are eight bytes that sort as they do. */
export function keyOf (tag: number, ...parts: readonly (Buffer | number)[]): Buffer {
  let size = 1
  for (const part of parts) size += typeof part === 'number' ? 8 : part.length
  const key = Buffer.allocUnsafe(size)
  let at = key.writeUInt8(tag)
  for (const part of parts) {
    if (typeof part === 'number') at = writeOrdered(key, part, at)
    else at += part.copy(key, at)
  }
  return key
}

/** The key of a part of a run. */
export function partKey (run: Buffer, part: number): Buffer {
  const key = Buffer.allocUnsafe(2 + HASH_BYTES)
  key[0] = TAG.run
  run.copy(key, 1)
  key[1 + HASH_BYTES] = part
  return key
}

/** The first key behind all those that begin with a prefix. */
export function behind (prefix: Buffer): Buffer {
  const key = Buffer.from(prefix)
  for (let at = key.length - 1; at >= 0; at--) {
    const byte = key[at] as number // within the key
    if (byte < 0xff) {
      key[at] = byte + 1
      return key.subarray(0, at + 1)
    }
  }
  return Buffer.alloc(HASH_BYTES, 0xff)
}

/** A number that {@link keyOf} wrote. */
export function orderedAt (key: Buffer, at: number): number {
  const bytes = Buffer.from(key.subarray(at, at + 8))
  turn(bytes, (bytes[0] as number) >= 0x80) // eight bytes
  return bytes.readDoubleBE()
}

function writeOrdered (key: Buffer, value: number, at: number): number {
  const end = key.writeDoubleBE(value === 0 ? 0 : value, at) // no negative zero
  turn(key.subarray(at, end), (key[at] as number) < 0x80)
  return end
}

/** Doubles sort like their bytes once the sign is turned, and negative ones all through. */
function turn (bytes: Buffer, isSignOnly: boolean): void {
  const count = isSignOnly ? 1 : bytes.length
  const mask = isSignOnly ? 0x80 : 0xff
  for (let at = 0; at < count; at++) bytes[at] = (bytes[at] as number) ^ mask // within the bytes
}
