/** Events that a reader asked for and cannot get. */
export interface Gap {
  /**
   * - `trimmed`: the cursor is older than what is kept
   * - `epoch`: it belongs to a life that the topic has not had
   * - `ahead`: it is beyond the last event, or the last one of its own life
   * - `invalid`: it is no cursor
   * - `lagged`: the reader was attached and fell behind what is kept
   */
  readonly reason: 'trimmed' | 'epoch' | 'ahead' | 'invalid' | 'lagged'
  /** First sequence that is kept, where reading goes on; one more than `last` if none is. */
  readonly oldest: number
  /** Last sequence that this reader may see. */
  readonly last: number
}

/**
 * What is written in the place of a gap: the text of whole frames, or nothing. With `after`, the text stands for everything
 * up to that sequence (a snapshot, R12) and reading goes on behind it; it is taken into the range of what is kept.
 */
export type GapAnswer = string | { readonly text: string, readonly after: number } | undefined
