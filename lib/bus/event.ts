/** An event as its topic keeps it: the canonical payload that every {@link View} frames. */
export interface BusEvent {
  /** Position in the topic: dense, from the topic's first sequence on, given by the topic. */
  readonly seq: number
  /** Name of the event; holds no CR, LF or NUL. */
  readonly event?: string | undefined
  /** Canonical payload: one line of JSON, or raw text. Well-formed Unicode. */
  readonly data: string
  /** Level of detail, for views that leave events out (R10); means what their author says. */
  readonly level?: number | undefined
  /** The payload is known to be one line, see {@link EventInit.isLine}. */
  readonly isLine?: boolean | undefined
}

/** What an owner appends; the topic adds the sequence. */
export interface EventInit {
  /** Name of the event. CR, LF and NUL are refused (AGT_ERR_BUS_EVENT_NAME). */
  readonly event?: string | undefined
  /** Canonical payload. Lone surrogates become U+FFFD, so that live, replay and stores agree. */
  readonly data: string
  /** Level of detail, for views that leave events out (R10). */
  readonly level?: number | undefined
  /**
   * A promise: the payload is well-formed Unicode and holds none of CR, LF, U+0085, U+2028 and U+2029. Nobody looks at it
   * then, which is most of what framing a short payload costs. @default false
   */
  readonly isLine?: boolean | undefined
}
