import { type Gap } from '../bus/index.ts'
import { type SseReply } from './headers.ts'

/** How a stream ended, for its observer: more than its client is told. */
export type StreamOutcome =
  /** Everything was written. */
  | 'ended'
  /** The client went away. */
  | 'disconnected'
  /** The client took nothing for too long, and its connection was dropped. */
  | 'write-timeout'
  /** It was as old as a stream may get. */
  | 'stream-timeout'
  /** The client was too far behind, and was sent away with a cursor. */
  | 'lagged'
  /** The hub was closed. */
  | 'closed'

/** Watches one stream. */
export interface StreamObserver {
  /** Events that the client asked for, or fell behind, are gone. */
  gap? (reason: Gap['reason']): void
  /** The connection has let go of the stream. Always comes, last. */
  closed (outcome: StreamOutcome): void
}

/**
 * Watches the streams of a hub. Called a few times a stream, never per event or per heartbeat; must not throw. An object rather than
 * `node:diagnostics_channel` for the reasons that `EngineObserver` gives.
 */
export interface SseObserver {
  /** A stream was opened; `about` is what its opener passed to {@link SseHub.open}. */
  opened (reply: SseReply, about: unknown): StreamObserver | undefined
}
