import { type Cursor } from '../bus/index.ts'
import { type Run } from './run.ts'
import { MAX_AHEAD_MS } from './writer.ts'

/**
 * Waits until a reader's cursor is stored. Who was cut a moment ago may have been told what its run has yet to store (R1), here or on the
 * node that executes it. Resolves at once where that can not be: for a cursor of an earlier life of the log, or a run that is not under way. Else
 * after at most two seconds, for that is how far a run may be ahead, or with the signal.
 */
export async function untilStored (run: Run, cursor: Cursor, signal: AbortSignal): Promise<void> {
  const { topic } = run
  const isComing = (): boolean => cursor.epoch === topic.epoch && cursor.seq > topic.stored
  const { state } = run.record
  if ((state !== 'pending' && state !== 'running') || !isComing()) return
  const connection = run.connect()
  try {
    const items = topic.subscribe({ from: 'live', signal: AbortSignal.any([signal, AbortSignal.timeout(MAX_AHEAD_MS)]) })
    for await (const _ of items) if (!isComing()) break // eslint-disable-line @typescript-eslint/no-unused-vars
  } finally {
    connection.close()
  }
}
