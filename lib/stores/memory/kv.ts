import type { JsonValue } from '../../agent/json.ts'
import type { CompareAndSetResult, Kv, KvKey, SetIfAbsentResult } from '../kv.ts'
import { ownerText } from '../run-key.ts'
import type { MemoryState } from './state.ts'

interface Value {
  readonly json: string
  readonly expiresAt: number
}

/** {@link Kv} in memory. Values are kept as JSON text, the one written longest ago first. */
export class MemoryKv implements Kv {
  readonly #state: MemoryState
  readonly #values = new Map<string, Value>()

  constructor (state: MemoryState) {
    this.#state = state
    state.register({
      sweep: (now) => { for (const [text, { expiresAt }] of this.#values) if (expiresAt <= now) this.#values.delete(text) },
      isEmpty: () => this.#values.size === 0
    })
  }

  async get (key: KvKey): Promise<JsonValue | undefined> {
    return parsed(this.#json(kvText(key)))
  }

  async set (key: KvKey, value: JsonValue, ttlMs: number): Promise<void> {
    this.#write(kvText(key), value, ttlMs)
  }

  async setIfAbsent (key: KvKey, value: JsonValue, ttlMs: number): Promise<SetIfAbsentResult> {
    const text = kvText(key)
    const json = this.#json(text)
    if (json !== undefined) return { kind: 'exists', value: JSON.parse(json) }
    this.#write(text, value, ttlMs)
    return { kind: 'set' }
  }

  async compareAndSet (key: KvKey, expected: JsonValue | undefined, value: JsonValue, ttlMs: number): Promise<CompareAndSetResult> {
    const text = kvText(key)
    const json = this.#json(text)
    if (json !== (expected === undefined ? undefined : JSON.stringify(expected))) return { kind: 'differs', value: parsed(json) }
    this.#write(text, value, ttlMs)
    return { kind: 'set' }
  }

  async delete (key: KvKey): Promise<void> {
    this.#values.delete(kvText(key))
  }

  #json (text: string): string | undefined {
    const value = this.#values.get(text)
    return value !== undefined && value.expiresAt > this.#state.now ? value.json : undefined
  }

  #write (text: string, value: JsonValue, ttlMs: number): void {
    this.#values.delete(text)
    if (this.#values.size >= this.#state.options.maxKv) {
      const oldest = this.#values.keys().next()
      if (oldest.done !== true) this.#values.delete(oldest.value)
    }
    this.#values.set(text, { json: JSON.stringify(value), expiresAt: this.#state.now + ttlMs })
    this.#state.keepSwept()
  }
}

function parsed (json: string | undefined): JsonValue | undefined {
  return json === undefined ? undefined : JSON.parse(json)
}

function kvText ({ owner, space, key }: KvKey): string {
  return JSON.stringify([ownerText(owner), space, key])
}
