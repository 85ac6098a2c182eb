import type { JsonValue } from '../../agent/json.ts'
import type { SignalChannel, SignalHandler, Signals, Unsubscribe } from '../signals.ts'
import { frozen } from './frozen.ts'
import type { RedisParts } from './parts.ts'
import type { Listener, Subscriber } from './subscriber.ts'

/** {@link Signals} in Redis: its pub/sub, in JSON. To publish is one command, to listen costs one connection a process. */
export class RedisSignals implements Signals {
  readonly #parts: RedisParts
  readonly #subscriber: Subscriber

  constructor (parts: RedisParts, subscriber: Subscriber) {
    this.#parts = parts
    this.#subscriber = subscriber
  }

  async publish (channel: SignalChannel, message: JsonValue): Promise<void> {
    const { connection, keys } = this.#parts
    await connection.publish(keys.channel(channel), JSON.stringify(message))
  }

  async subscribe (channel: SignalChannel, handler: SignalHandler): Promise<Unsubscribe> {
    const name = this.#parts.keys.channel(channel)
    let isOn = true
    // One task each: a handler that throws all the same is reported by the process and stops no other.
    const later = (task: () => void): void => { queueMicrotask(() => { if (isOn) task() }) }
    const listener: Listener = {
      message: (text) => { later(() => { handler.message(frozen(JSON.parse(text) as JsonValue)) }) }, // as published
      reset: () => { later(() => { handler.reset?.() }) }
    }
    await this.#subscriber.add(name, listener)
    return () => {
      isOn = false
      this.#subscriber.remove(name, listener)
    }
  }
}
