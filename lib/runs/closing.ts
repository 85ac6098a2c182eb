import { type Pending } from '../agent/index.ts'
import { type InterruptRecord, type NewInterrupt, type RunEndRecord, type RunRecord } from '../stores/index.ts'
import { closingOf, endOf, endRecordOf, type ToldCause } from './ending.ts'
import { failureOf } from './errors.ts'
import { type Execution } from './execution.ts'
import { newInterrupt } from './interrupts.ts'
import { type RunLogger } from './logger.ts'
import { type ExecutionEnd, type RunProtocol } from './protocol.ts'
import { type RunLog } from './run-log.ts'

/** The run whose execution is closed. */
export interface ClosingRun {
  readonly protocol: RunProtocol
  readonly record: RunRecord
  readonly log: RunLog
  readonly logger: RunLogger
  /** Milliseconds after which the interrupts of this execution can only be cancelled; 0 = never. */
  readonly interruptTtlMs: number
}

/** An execution that has said all it will: the end it was given, and what it waits for. */
export interface ClosedExecution {
  readonly end: ExecutionEnd
  /** What the run's record keeps of the end. */
  readonly endRecord: RunEndRecord
  readonly interrupts: readonly NewInterrupt[]
}

/**
 * Lets normaliser and projection close, everything held back (R3). A projection that fails is replaced by the protocol's bare
 * terminal, which is legal after whatever it has emitted.
 */
export function closeExecution (run: ClosingRun, execution: Execution, cause: ToldCause): ClosedExecution {
  const { log, logger } = run
  log.hold()
  try {
    const projection = execution.open()
    execution.finish(closingOf(cause))
    const interrupts: NewInterrupt[] = []
    const end = endOf(cause, execution.normaliser?.usage, (pending) => {
      interrupts.push(...interruptsOf(run, pending, execution.openCalls))
      return interrupts.map((interrupt): InterruptRecord => ({ ...interrupt, run: run.record.key, session: run.record.session, state: 'open' }))
    })
    projection.close(end, log.emit)
    if (end.kind === 'failed') logger.warn({ err: end.error.cause, code: end.error.code }, 'the agent failed')
    return { end, endRecord: { ...endRecordOf(end), ...run.protocol.endRecord?.(end, run.record) }, interrupts }
  } catch (error) {
    logger.error({ err: error }, 'the projection of a run failed')
    return bareEnd(run, error)
  }
}

/** Requests of the agent that the protocol wants recorded. */
function interruptsOf ({ protocol, record, interruptTtlMs }: ClosingRun, requests: readonly Pending[], openCalls: readonly string[]): NewInterrupt[] {
  const now = Date.now()
  return requests.flatMap((pending) => {
    const id = protocol.interruptId(pending, record)
    return id === undefined ? [] : newInterrupt(pending, id, openCalls, now, interruptTtlMs)
  })
}

function bareEnd ({ protocol, record, log }: ClosingRun, error: unknown): ClosedExecution {
  const failure = failureOf(error)
  log.clearHeld()
  for (const event of protocol.lost(record, failure)) log.hold(event)
  const end = { kind: 'failed', error: failure } as const
  return { end, endRecord: endRecordOf(end), interrupts: [] }
}
