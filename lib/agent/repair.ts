/** Why an event was dropped, inserted or closed. */
export type RepairReason =
  | 'not-an-event'          // dropped: no object, or one that cannot be read
  | 'unknown-type'          // dropped
  | 'invalid'               // dropped: a required member is missing or of a wrong type
  | 'empty'                 // dropped: a delta without text, a pause without requests
  | 'after-end'             // dropped: the agent went on after AGENT_END
  | 'duplicate'             // dropped: the same was told before
  | 'not-open'              // dropped: an end or a late delta of something that is not open
  | 'missing-start'         // inserted: AGENT_START, a block's, call's or model call's start
  | 'missing-call'          // inserted: the tool call of a result or a pause
  | 'missing-arguments'     // inserted: the `{}` of a call that had no arguments
  | 'missing-end'           // closed: key reused, its call answered, its model call ended, or the stream ended

/** One change that the {@link Normaliser} made to what an agent yielded. */
export interface Repair {
  readonly action: 'dropped' | 'inserted' | 'closed'
  readonly reason: RepairReason
  /** Type of the event that was dropped or put in, if it had one. */
  readonly type?: string
  /** Path of the child agent. */
  readonly source?: string
  /** Block or tool call id. */
  readonly key?: string
}
