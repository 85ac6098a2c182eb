import type { JsonValue } from '../../agent/json.ts'
import type { CompareAndSetResult, Kv, KvKey, SetIfAbsentResult } from '../kv.ts'
import { keyOf, ownedHashOf, TAG } from './keys.ts'
import type { LmdbParts } from './parts.ts'

/** {@link Kv} in LMDB. */
export class LmdbKv implements Kv {
  readonly #parts: LmdbParts

  constructor (parts: LmdbParts) {
    this.#parts = parts
    parts.sweeper.register(TAG.value, (key) => { parts.values.remove(key) })
  }

  async get (key: KvKey): Promise<JsonValue | undefined> {
    return parsed(this.#json(valueKey(key)))
  }

  async set (key: KvKey, value: JsonValue, ttlMs: number): Promise<void> {
    const json = JSON.stringify(value)
    await this.#parts.queue.write(() => { this.#put(valueKey(key), json, ttlMs) })
  }

  async setIfAbsent (key: KvKey, value: JsonValue, ttlMs: number): Promise<SetIfAbsentResult> {
    const json = JSON.stringify(value)
    const at = valueKey(key)
    return await this.#parts.queue.write((): SetIfAbsentResult => {
      const there = this.#json(at)
      if (there !== undefined) return { kind: 'exists', value: JSON.parse(there) }
      this.#put(at, json, ttlMs)
      return { kind: 'set' }
    })
  }

  async compareAndSet (key: KvKey, expected: JsonValue | undefined, value: JsonValue, ttlMs: number): Promise<CompareAndSetResult> {
    const json = JSON.stringify(value)
    const wanted = expected === undefined ? undefined : JSON.stringify(expected)
    const at = valueKey(key)
    return await this.#parts.queue.write((): CompareAndSetResult => {
      const there = this.#json(at)
      if (there !== wanted) return { kind: 'differs', value: parsed(there) }
      this.#put(at, json, ttlMs)
      return { kind: 'set' }
    })
  }

  async delete (key: KvKey): Promise<void> {
    await this.#parts.queue.write(() => { this.#parts.values.remove(valueKey(key)) })
  }

  #json (key: Buffer): string | undefined {
    return this.#parts.values.get(key, this.#parts.runs.now)?.toString()
  }

  #put (key: Buffer, json: string, ttlMs: number): void {
    const { values, runs } = this.#parts
    values.put(key, Buffer.from(json), runs.now + ttlMs)
  }
}

function parsed (json: string | undefined): JsonValue | undefined {
  return json === undefined ? undefined : JSON.parse(json)
}

function valueKey ({ owner, space, key }: KvKey): Buffer {
  return keyOf(TAG.value, ownedHashOf('value', owner, space, key))
}
