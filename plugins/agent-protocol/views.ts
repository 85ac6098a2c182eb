import { encodeFrame, type SseView, spreadRetry } from '../../lib/sse/index.ts'
import { levelOf } from './projection.ts'
import { type Detail, type GapReason, withoutPayload } from './wire.ts'

/** How a reader sees a task: the submitter's detail or a narrower one (R10), with payloads or without. */
export interface TaskViewOptions {
  readonly narrow: Detail | undefined
  readonly hasPayload: boolean
}

const views = new Map<string, SseView>()

/** The view of a reader; one for all who see alike, so that each event is encoded once for them. */
export function taskView ({ narrow, hasPayload }: TaskViewOptions): SseView {
  const key = `task ${narrow ?? 'whole'} ${hasPayload ? 'payload' : 'slim'}`
  let view = views.get(key)
  if (view === undefined) views.set(key, view = makeView(key, narrow, hasPayload))
  return view
}

function makeView (key: string, narrow: Detail | undefined, hasPayload: boolean): SseView {
  const ceiling = narrow === undefined ? Infinity : levelOf(narrow)
  const reused = { head: '', data: '', tail: '\n\n' }
  return {
    key,
    frame ({ seq, event = '', data, level = 0 }, { prevSeq }) {
      if (level > ceiling) return undefined
      // The event's name is one of ours; its JSON is an object with members, on one line.
      reused.head = `id: ${seq}\nevent: ${event}\ndata: {"seq":${seq},${narrow === undefined ? '' : `"prevSeq":${prevSeq},`}`
      reused.data = (hasPayload ? data : withoutPayload(data)).slice(1)
      return reused
    },
    cursorId: ({ seq }) => String(seq)
  }
}

/** What a stream begins with: something at once, because clients wait for the first byte, and when to come back. */
export const OPENING = encodeFrame({ comment: 'ok', retry: 2_000 })

const FAREWELLS = { timeout: 'timeout', closed: 'shutdown', lagged: 'overflow', stopped: 'moved' } as const

/** What a stream says that ends before its task does. Readers that a closing server sends away come back one after the other. */
export function farewell (cursorId: string | undefined, why: keyof typeof FAREWELLS): string {
  return encodeFrame({ comment: FAREWELLS[why], ...cursorId !== undefined && { id: cursorId }, ...why === 'closed' && { retry: spreadRetry() } })
}

/** What a reader asked for and cannot have. */
export interface TaskGap {
  readonly taskId: string
  readonly reason: GapReason
  /** Absent where the cursor was none. */
  readonly fromSeq?: number
  readonly oldestSeq: number
  readonly lastSeq: number
  readonly streamEpoch: string
}

/** The event that stands in the place of what is missing; it has no id, so that nobody comes back with one that was never given. */
export function gapFrame (gap: TaskGap): string {
  const { taskId, fromSeq, oldestSeq, lastSeq, reason, streamEpoch } = gap
  const missed = reason === 'evicted' ? Math.max(0, oldestSeq - 1 - (fromSeq ?? 0)) : undefined
  return encodeFrame({
    event: 'STREAM_GAP',
    data: JSON.stringify({
      type: 'STREAM_GAP', taskId, ...fromSeq !== undefined && { fromSeq }, oldestSeq, lastSeq, ...missed !== undefined && { missed }, reason, streamEpoch
    })
  })
}
