import { type InterruptRecord, type RunRecord } from '../../lib/stores/index.ts'
import { runError } from './errors.ts'
import { type AgUiEvent } from './event-schemas.ts'
import { interruptOf } from './interrupts.ts'

/**
 * The snapshot of a run as its thread stands now: with the open interrupts in its outcome, whatever the run itself ended with, and without those
 * that wait no more (ag-ui 24.3). A client keeps what it is told here, and can start no run that leaves it out. The log of a run that was lost
 * while it waited has ended with its question: its record says so.
 */
export function withOpenInterrupts (events: readonly AgUiEvent[], open: readonly InterruptRecord[], { state, end, endedAt = 0 }: Pick<RunRecord, 'state' | 'end' | 'endedAt'>): AgUiEvent[] {
  const [start] = events
  const terminal = events.at(-1)
  if (start?.type !== 'RUN_STARTED' || terminal === undefined) return [...events]
  const told = terminal.type === 'RUN_FINISHED' && terminal.outcome?.type === 'interrupt' ? terminal.outcome.interrupts : []
  if (told.length === 0 && open.length === 0) return [...events]

  const before = events.slice(0, terminal.type === 'RUN_FINISHED' || terminal.type === 'RUN_ERROR' ? -1 : undefined)
  const { threadId, runId } = start
  const ended = terminal.type === 'RUN_FINISHED' ? terminal : { type: 'RUN_FINISHED' as const, threadId, runId }
  if (open.length === 0 && state === 'lost') return [...before, runError(end?.code ?? '', end?.message ?? '', endedAt)]
  if (open.length === 0) {
    const { outcome, ...plain } = ended
    return [...before, plain]
  }
  const interrupts = open.map(({ id, pending, expiresAt }) => told.find((interrupt) => interrupt.id === id) ?? interruptOf(pending, { id, expiresAt }))
  return [...before, { ...ended, outcome: { type: 'interrupt', interrupts } }]
}
