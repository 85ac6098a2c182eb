import type { JsonValue } from '../../agent/json.ts'
import type { CompareAndSetResult, Kv, KvKey, SetIfAbsentResult } from '../kv.ts'
import { frozen } from './frozen.ts'
import type { RedisParts } from './parts.ts'
import { COMPARE_AND_SET } from './scripts/kv.ts'

/** {@link Kv} in Redis: JSON text under a key that runs out. */
export class RedisKv implements Kv {
  readonly #parts: RedisParts

  constructor (parts: RedisParts) {
    this.#parts = parts
  }

  async get (key: KvKey): Promise<JsonValue | undefined> {
    return parsed(await this.#parts.connection.command('kv.get', 'GET', this.#name(key)))
  }

  async set (key: KvKey, value: JsonValue, ttlMs: number): Promise<void> {
    await this.#parts.connection.command('kv.set', 'SET', this.#name(key), JSON.stringify(value), 'PX', ttlMs)
  }

  async setIfAbsent (key: KvKey, value: JsonValue, ttlMs: number): Promise<SetIfAbsentResult> {
    const there = parsed(await this.#parts.connection.command('kv.setIfAbsent', 'SET', this.#name(key), JSON.stringify(value), 'PX', ttlMs, 'NX', 'GET'))
    return there === undefined ? { kind: 'set' } : { kind: 'exists', value: there }
  }

  async compareAndSet (key: KvKey, expected: JsonValue | undefined, value: JsonValue, ttlMs: number): Promise<CompareAndSetResult> {
    const answer = await this.#parts.connection.run(
      'kv.compareAndSet', COMPARE_AND_SET, [this.#name(key)], expected === undefined ? '' : JSON.stringify(expected), JSON.stringify(value), ttlMs)
    const [isSet, there] = answer as [number | string, string | null | undefined] // as the script answers
    return Number(isSet) === 1 ? { kind: 'set' } : { kind: 'differs', value: parsed(there) }
  }

  async delete (key: KvKey): Promise<void> {
    await this.#parts.connection.command('kv.delete', 'DEL', this.#name(key))
  }

  #name ({ owner, space, key }: KvKey): string {
    return this.#parts.keys.value(owner, space, key)
  }
}

function parsed (json: unknown): JsonValue | undefined {
  return typeof json === 'string' ? frozen(JSON.parse(json) as JsonValue) : undefined // as it was written
}
