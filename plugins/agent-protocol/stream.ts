import { type FastifyReply } from 'fastify'
import { type Attachment } from '../../lib/bus/index.ts'
import { type Run } from '../../lib/runs/index.ts'
import { isEnded } from '../../lib/stores/index.ts'
import { type AskedCursor, startOf } from './cursor.ts'
import { TaskError } from './errors.ts'
import { maxLagOf } from './options.ts'
import { type TaskScope } from './scope.ts'
import { gapFrame, OPENING, type TaskGap, taskView, type TaskViewOptions } from './views.ts'

/** How a task is streamed. */
export interface StreamOptions extends TaskViewOptions {
  readonly cursor: AskedCursor
  /** Whether what cannot be replayed is refused with 410 instead of being told in the stream. */
  readonly failsOnGap: boolean
}

/**
 * Opens the reply as the task's event stream, from the cursor on to the end. Answers false, having done nothing, when the reader has all of
 * a task that is over. @throws AGT_ERR_TASK_REPLAY_GAP, AGT_ERR_TASK_SEQUENCE_AHEAD, AGT_ERR_TASK_TOO_MANY_STREAMS
 */
export function streamTask (scope: TaskScope, reply: FastifyReply, run: Run, options: StreamOptions): boolean {
  const { hub, readers, options: { maxSubscribersPerTask } } = scope
  const { topic, record } = run
  const { cursor } = options
  if (isEnded(record.state) && cursor.kind === 'after' && cursor.seq === topic.last) return false

  const { after, gap } = startOf(topic, cursor)
  const missing: TaskGap | undefined = gap === undefined ? undefined : gapOf(run, gap, cursor)
  if (missing !== undefined && options.failsOnGap) throw refusal(missing)
  const { id } = record.key
  const others = readers.get(id) ?? 0
  if (others >= maxSubscribersPerTask) throw new TaskError('too_many_streams', 'this task has too many readers', { task_id: record.clientId })

  const stream = hub.open(reply, record)
  readers.set(id, others + 1)
  const connection = run.connect()
  // However it ends, somebody less reads from then on.
  stream.closed.then(() => {
    connection.close()
    const rest = (readers.get(id) ?? 1) - 1
    if (rest === 0) readers.delete(id)
    else readers.set(id, rest)
  })
  if (gap !== undefined) stream.noteGap(gap === 'ahead' || gap === 'invalid' ? gap : 'trimmed')
  stream.write(OPENING + (missing === undefined ? '' : gapFrame(missing)))
  const following: { reader?: Attachment } = {}
  following.reader = stream.follow(topic, {
    view: taskView(options),
    after: { seq: after },
    maxLagBytes: maxLagOf(scope.options),
    // A reader that has fallen behind was told something already, up to its cursor.
    gap: ({ last }) => gapFrame({ ...gapOf(run, 'evicted', cursor), ...following.reader !== undefined && { fromSeq: following.reader.cursor.seq }, lastSeq: last })
  })
  return true
}

function gapOf ({ topic, record }: Run, reason: TaskGap['reason'], cursor: AskedCursor): TaskGap {
  return {
    taskId: record.clientId,
    reason,
    ...cursor.kind !== 'invalid' && { fromSeq: cursor.kind === 'after' ? cursor.seq : 0 },
    oldestSeq: topic.oldest,
    lastSeq: topic.stored,
    streamEpoch: topic.epoch
  }
}

function refusal (gap: TaskGap): TaskError {
  const { taskId, reason, fromSeq, oldestSeq, lastSeq } = gap
  const details = { task_id: taskId, reason, ...fromSeq !== undefined && { from_seq: fromSeq }, oldest_seq: oldestSeq, last_seq: lastSeq }
  if (reason === 'ahead') return new TaskError('sequence_ahead', 'the task has no such event yet; take a snapshot', details)
  return new TaskError('replay_gap', 'the events after this one are no longer kept; take a snapshot', details)
}
