import type { AttachOptions, Attachment } from './attachment.ts'
import type { BusEvent, EventInit } from './event.ts'
import type { EventBlock } from './event-block.ts'
import type { SubscribeOptions, Subscription } from './subscription.ts'

/**
 * A log of events with its readers, got from {@link EventBus.topic}. The owner appends; readers are cursors into the log,
 * so that live push, replay and catching up are the same act.
 */
export interface Topic {
  readonly key: string
  /** Present life of the topic. A cursor of a life that it has not had, or beyond the end of one that it had, is answered by a gap. */
  readonly epoch: string
  /** First sequence that is kept; `last + 1` if none is. */
  readonly oldest: number
  /** Sequence of the latest event; one less than the first sequence before there is any. */
  readonly last: number
  /** The stored watermark (R1): how far readers see, unless they read ahead. */
  readonly stored: number
  /** Bytes that count: payloads by their length as text, and the frames of every view. A payload that lies in a frame as it is counts as both and is kept once. */
  readonly bytes: number
  /** Attachments and subscriptions that are open. */
  readonly readers: number
  /** `end()` was called. */
  readonly isEnded: boolean
  /** It was dropped, to make room or by its owner, or its bus was closed: it takes nothing more. */
  readonly isClosed: boolean
  /**
   * Asked before anything is delivered: false holds it back, until it is asked again with the next event or by {@link Topic.wake}. For an
   * owner who may have lost the topic without knowing it (R8). Must not throw. @default nothing is held back
   */
  mayDeliver: (() => boolean) | undefined
  /** Called before events are dropped, the last moment to keep what they mean (R12). Must not throw. */
  onTrim: ((fromSeq: number, toSeq: number) => void) | undefined
  /**
   * Adds an event and returns its sequence, given in the same tick. It is delivered on the next tick, or at once when
   * 32 KB have gathered. @throws AGT_ERR_BUS_EVENT_NAME, AGT_ERR_BUS_TOPIC_ENDED, AGT_ERR_BUS_CLOSED
   */
  append (init: EventInit): number
  /** The same without an object for each event: `options` may be one that is used again and again. */
  add (data: string, options?: Omit<EventInit, 'data'>): number
  /**
   * Begins another life with the next event: for a log that goes on under an owner who may not know all that was told before. What
   * was appended keeps its life, and with it its id. A life without events is forgotten, and one that the topic has had already is
   * not begun again. `firstSeq`: where the life began, if its first events are not kept; only while none is. @throws AGT_ERR_BUS_EPOCH
   */
  renew (epoch: string, firstSeq?: number): void
  /** Epoch of the life that a sequence belongs to: what its cursor is made of. */
  epochAt (seq: number): string
  /** Sequence of the latest event of a life; undefined for one that this topic has not had. */
  lastOf (epoch: string): number | undefined
  /** Raises the stored watermark of a topic whose watermark is `manual`; lower values and those beyond `last` are ignored. */
  markStored (seq: number): void
  /** Delivers what was held back, on the next tick. */
  wake (): void
  /** No more events: readers get what is left, then `end('complete')`. A second call does nothing. */
  end (): void
  /** Ends every reader with `closed`: each may come again with its cursor. What is kept stays. */
  endReaders (): void
  /** Attaches a sink; what is there already is written before this returns. */
  attach (options: AttachOptions): Attachment
  /** Reads as objects instead of bytes. */
  subscribe (options?: SubscribeOptions): Subscription
  /** Undefined: go on. Otherwise resolves when every lossless reader is less than 64 KB behind, or gone (R17). */
  ready (): Promise<void> | undefined
  /** Events that follow a sequence, from the oldest kept on, in one piece: at most 256 of them and 32 KB, or one that is larger. Undefined where there is none. */
  blockAfter (seq: number): EventBlock | undefined
  /** The events after a sequence that are kept, oldest first, stored or not; at most `limit`. */
  read (after: number, limit?: number): readonly BusEvent[]
}
