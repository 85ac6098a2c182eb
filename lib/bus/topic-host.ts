import type { Flusher } from './flusher.ts'
import type { ReplayLimits } from './options.ts'

/** What a topic needs of its bus. */
export interface TopicHost<Hosted> {
  readonly flusher: Flusher
  /** False: whoever attaches or subscribes is ended at once. */
  readonly takesReaders: boolean
  /** The topic's bytes have changed by so much. */
  count (topic: Hosted, bytes: number): void
  /** Its readers came or went, it ended, or it was appended to without readers. */
  touch (topic: Hosted): void
  /** Its time is over and nobody reads it. */
  drop (topic: Hosted): void
}

/** How a topic was made, all resolved. */
export interface TopicSettings {
  readonly replay: ReplayLimits
  readonly coalesceMs: number
  readonly isManual: boolean
  readonly isOwned: boolean
}
