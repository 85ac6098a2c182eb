import { type FastifyReply } from 'fastify'
import { type Cursor } from '../../lib/bus/index.ts'
import { type Run } from '../../lib/runs/index.ts'
import { sseView } from '../../lib/sse/index.ts'
import { type AgUiScope } from './scope.ts'

/** Frames of a run: `id: <epoch>.<seq>` and one line of JSON. */
export const runView = sseView({ id: 'epoch' })

/** How a run is read. */
export interface FollowOptions {
  /** Whether this is the stream of the request that started the run: lossless, and the agent waits for it (R17). */
  readonly own: boolean
  /** Where to go on; absent means from the first event. */
  readonly after?: Cursor
  /** Frames to write first. */
  readonly before?: string
}

/** Opens the reply as an event stream that follows a run from a cursor to its end. */
export function followRun (scope: AgUiScope, reply: FastifyReply, run: Run, options: FollowOptions): void {
  const stream = scope.hub.open(reply)
  const connection = run.connect({ own: options.own, onDrop: () => { stream.destroy('timeout') } })
  // However the stream ends, somebody less is connected from then on.
  void stream.closed.then(() => { connection.close() })
  if (options.before !== undefined) stream.write(options.before)
  stream.follow(run.topic, {
    view: runView,
    upTo: options.own ? 'last' : 'stored',
    lossless: options.own,
    ...options.after === undefined ? { from: 'start' } : { after: options.after }
  })
}
