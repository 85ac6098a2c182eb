import type { JsonValue } from '../agent/json.ts'
import { ownerText, runKeyText } from './run-key.ts'
import type { SignalChannel, SignalHandler, Signals, Unsubscribe } from './signals.ts'
import { frozenJson } from './rules/frozen-json.ts'

/** {@link Signals} within one process. */
export class LocalSignals implements Signals {
  readonly #channels = new Map<string, Set<SignalHandler>>()

  async publish (channel: SignalChannel, message: JsonValue): Promise<void> {
    const handlers = this.#channels.get(channelText(channel))
    if (handlers === undefined) return
    const copy = frozenJson(message)
    for (const handler of handlers) {
      // One task each: a handler that throws all the same is reported by the process and stops no other.
      queueMicrotask(() => { if (handlers.has(handler)) handler.message(copy) })
    }
  }

  async subscribe (channel: SignalChannel, handler: SignalHandler): Promise<Unsubscribe> {
    const text = channelText(channel)
    let handlers = this.#channels.get(text)
    if (handlers === undefined) this.#channels.set(text, handlers = new Set())
    const joined = handlers
    // A handler of its own, so that the same object subscribed twice is two subscriptions.
    const own: SignalHandler = { message: (message) => handler.message(message) }
    joined.add(own)
    return () => {
      joined.delete(own)
      if (joined.size === 0 && this.#channels.get(text) === joined) this.#channels.delete(text)
    }
  }

  /** Ends all subscriptions. */
  close (): void {
    for (const handlers of this.#channels.values()) handlers.clear()
    this.#channels.clear()
  }
}

/** One text for one channel, different for different channels whatever characters the ids hold. */
export function channelText (channel: SignalChannel): string {
  switch (channel.kind) {
    case 'run': return JSON.stringify(['run', runKeyText(channel.key)])
    case 'node': return JSON.stringify(['node', channel.node])
    case 'gate': return JSON.stringify(['gate', ownerText(channel.owner), channel.session])
  }
}
