import { type Cursor } from '../../lib/bus/index.ts'
import { sseView } from '../../lib/sse/index.ts'

/** Frames of a run: `id: <epoch>.<seq>` and one line of JSON. */
export const runView = sseView({ id: 'epoch' })

/** Frames that stand for nothing in a log, and so have no id. */
const bareView = sseView({ id: 'none' })

/**
 * One event as a frame outside any log, framed as those of a run are. With a cursor, a client that has read it comes back behind that.
 * @param data one line of JSON
 */
export function frameOf (data: string, cursor?: Cursor): string {
  const { epoch, seq } = cursor ?? { seq: 0 }
  const view = epoch === undefined ? bareView : runView
  const frame = view.frame({ seq, data }, { epoch: epoch ?? '', prevSeq: seq - 1 })
  // The view leaves no event out and writes text.
  return frame === undefined ? '' : `${frame.head}${String(frame.data)}${frame.tail}`
}
