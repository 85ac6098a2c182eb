import type { JsonValue } from '../agent/json.ts'
import type { Owner, RunKey } from './run-key.ts'

/** Whom a message is for: the followers of a run, one node, or those who queue at a session's gate. */
export type SignalChannel =
  | { readonly kind: 'run', readonly key: RunKey }
  | { readonly kind: 'node', readonly node: string }
  | { readonly kind: 'gate', readonly owner: Owner, readonly session: string }

/** Called for each message and each break. Neither may throw. */
export interface SignalHandler {
  message (message: JsonValue): void
  /** The connection was away and is back: messages may have been missed. Read again what is followed. */
  reset?(): void
}

/** Ends a subscription; a second call does nothing. No message is delivered after it was called. */
export type Unsubscribe = () => void

/**
 * How nodes tell each other that something happened: new events of a run, a stop, a gate that became free (R7).
 *
 * Messages are hints, delivered at most once: what must not be lost is in the store before it is signalled, and who follows something
 * subscribes first and reads then. Messages of one publisher on one channel arrive in order. A message is also delivered to
 * subscribers in the publisher's own process, never within the call to `publish`.
 */
export interface Signals {
  publish (channel: SignalChannel, message: JsonValue): Promise<void>

  /** Resolves when every later `publish` will be seen. */
  subscribe (channel: SignalChannel, handler: SignalHandler): Promise<Unsubscribe>
}
