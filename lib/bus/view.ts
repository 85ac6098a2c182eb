import type { BusEvent } from './event.ts'

/** Where an event stands, beyond what it says itself. Valid during the call only: it is reused. */
export interface Position {
  /** Life of the topic that the event was appended in. */
  readonly epoch: string
  /** Sequence of the event before this one in the same view, so that a reader can see holes; one less than the first kept where nobody knows. */
  readonly prevSeq: number
}

/** One event as bytes on the wire: what stands before the payload, the payload, what stands behind it. A view may reuse it: it is read before the next call. */
export interface Frame {
  readonly head: string
  /** Text is written as UTF-8; bytes are copied. */
  readonly data: string | Uint8Array
  readonly tail: string
}

/**
 * How one binding frames the events of a topic (R10): stateless, called once an event, its bytes shared by all readers.
 * It must not throw for an event that the topic has taken.
 */
export interface View {
  /** Views of the same key share one encoding in a topic, so they must frame alike. */
  readonly key: string
  /** The event's frame; undefined where this view leaves the event out. */
  frame (event: BusEvent, at: Position): Frame | undefined
}
