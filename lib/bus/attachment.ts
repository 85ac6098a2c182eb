import type { Cursor } from './cursor.ts'
import type { Gap, GapAnswer } from './gap.ts'
import type { View } from './view.ts'

/** Why an attachment was ended by the topic. */
export type AttachmentEnd =
  /** The topic has ended and everything was written. */
  | 'complete'
  /** The reader was more than `maxLagBytes` behind. */
  | 'lagged'
  /** The bus was closed. */
  | 'closed'

/** Where an attachment's bytes go. Called synchronously, must not throw. */
export interface Sink {
  /**
   * Takes whole frames. False: nothing more is written until {@link Attachment.resume}. The bytes are shared by all readers
   * and never change: they may be kept while a write is in flight, and not modified. `isLast`: the topic has ended and nothing follows.
   */
  write (chunk: Uint8Array, isLast: boolean): boolean
  /** Events are missing; answers with what to write in their place. */
  gap (gap: Gap): GapAnswer | void
  /** Nothing more will be written; the cursor says from where another attachment would go on. Not called after `close()`. */
  end (why: AttachmentEnd, cursor: Cursor): void
}

/** How to attach a sink to a topic. */
export interface AttachOptions {
  readonly view: View
  readonly sink: Sink
  /** The last event the reader has seen; a text is parsed, and answered by a gap if it is no cursor. Wins over `from`. */
  readonly after?: Cursor | string | undefined
  /** Without a cursor: `start` reads from the topic's first event, with a gap where that is gone; `live` from the next one. @default 'start' */
  readonly from?: 'live' | 'start' | undefined
  /** How far to read: `stored` up to the stored watermark, `last` ahead of it (R1). @default 'stored' */
  readonly upTo?: 'stored' | 'last' | undefined
  /** The reader that the owner waits for by {@link Topic.ready} (R17): nothing is trimmed before it was written to this sink. @default false */
  readonly lossless?: boolean | undefined
  /** Bytes of frames that a stalled reader may be behind before it is cut. @default no limit: it finds a gap when it goes on */
  readonly maxLagBytes?: number | undefined
  /** Text around each frame's data, for this reader alone (the request's id of an envelope, R10). */
  readonly wrap?: { readonly prefix: string, readonly suffix: string } | undefined
}

/** A reader of a topic that takes bytes: a cursor, never a queue. */
export interface Attachment {
  /** The last event that was handed to the sink. */
  readonly cursor: Cursor
  /** Bytes of frames between the cursor and the end of what this reader may see. */
  readonly lagBytes: number
  /** Goes on after `write()` returned false: call it when the sink has drained. */
  resume (): void
  /** Detaches; the sink is not called again. */
  close (): void
}
