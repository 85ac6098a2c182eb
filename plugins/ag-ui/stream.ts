import { type FastifyReply } from 'fastify'
import { type Cursor, type Gap } from '../../lib/bus/index.ts'
import { type Run } from '../../lib/runs/index.ts'
import { type AgUiEvent } from './event-schemas.ts'
import { frameOf, runView } from './frames.ts'
import { type AgUiScope } from './scope.ts'

/** How a run is read. */
export interface FollowOptions {
  /** Whether this is the stream of the request that started the run: lossless, and the agent waits for it (R17). */
  readonly own: boolean
  /** Where to go on; absent means from the first event. */
  readonly after?: Cursor
  /** Frames to write first. */
  readonly before?: string
  /** Why the reader's own cursor is not honoured. */
  readonly gap?: Gap['reason']
}

/** Opens the reply as an event stream that follows a run from a cursor to its end. */
export function followRun (scope: AgUiScope, reply: FastifyReply, run: Run, options: FollowOptions): void {
  const stream = scope.hub.open(reply, run.record)
  const connection = run.connect({ own: options.own, onDrop: () => { stream.destroy('timeout') } })
  // However the stream ends, somebody less is connected from then on.
  stream.closed.then(() => { connection.close() })
  if (options.gap !== undefined) stream.noteGap(options.gap)
  if (options.before !== undefined) stream.write(options.before)
  stream.follow(run.topic, {
    view: runView,
    upTo: options.own ? 'last' : 'stored',
    lossless: options.own,
    ...options.after === undefined ? { from: 'start' } : { after: options.after }
  })
}

/** Follows a run for a reader who knows nothing of it: from its first frame where that is still kept, else from a snapshot (R12). */
export function followFromStart (scope: AgUiScope, reply: FastifyReply, run: Run, gap?: Gap['reason']): void {
  followRun(scope, reply, run, { own: false, ...gap !== undefined && { gap }, ...run.topic.oldest > 1 && snapshotOf(run) })
}

/**
 * Frames that bring a reader who knows nothing to where the run stands, and where to go on after them.
 * @param seen changes what the reader is shown
 */
export function snapshotOf (run: Run, seen: (events: readonly AgUiEvent[]) => readonly AgUiEvent[] = (events) => events): { readonly before?: string, readonly after?: Cursor } {
  const snapshot = run.snapshot()
  if (snapshot === undefined) return {}
  const { epoch, seq, events } = snapshot
  const after = { epoch, seq }
  // Only the last frame names the cursor: who is cut before it starts over.
  const shown = seen(events.map(({ data }) => JSON.parse(data) as AgUiEvent)) // made by our own fold
  const frames = shown.map((event, index) => frameOf(JSON.stringify(event), index === shown.length - 1 ? after : undefined))
  return { before: frames.join(''), after }
}
