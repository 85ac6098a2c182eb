import { type ResumeClaim, type Run } from '../../lib/runs/index.ts'
import { type Owner } from '../../lib/stores/index.ts'
import { detailOf, inputOf } from './protocol.ts'
import { type AnsweredInterrupt, type Resume, resumeOf } from './resume.ts'
import { resumedInput, viewOf } from './resumed-run.ts'
import { type NormalisedInput } from './schemas.ts'
import { type AgUiScope } from './scope.ts'

/** A request as it is run, with what it answers, or why it is refused. */
export type ReadAnswers =
  | { readonly kind: 'read', readonly input: NormalisedInput, readonly answered: readonly AnsweredInterrupt[], readonly claim?: ResumeClaim }
  | Extract<Resume, { kind: 'refused' }>

/** Looks what the request's thread waits for, and turns the request into the run that answers it. Claims nothing. */
export async function readAnswers ({ host, protocol, options }: AgUiScope, owner: Owner, input: NormalisedInput): Promise<ReadAnswers> {
  const { engine } = host
  const open = await engine.openInterrupts(owner, protocol.name, input.threadId)
  const last = open.length > 0 || givesUp(input) ? await engine.lastOf(owner, protocol.name, input.threadId) : undefined
  if (open.length === 0 && isSpent(input, last)) return { kind: 'read', input, answered: [] }
  const view = open.length > 0 ? viewOf(last) : undefined
  const resume = resumeOf(input, open, view?.interrupts ?? new Map(), options)
  if (resume.kind === 'refused') return resume
  if (resume.kind === 'none' || view === undefined) return { kind: 'read', input, answered: [] }
  const { claim, answered } = resume.answers
  return { kind: 'read', input: resumedInput(input, answered, view, last === undefined ? undefined : inputOf(last.record)), answered, claim }
}

/** Whether a request does nothing but give up what its client believes to be open. */
function givesUp ({ resume = [] }: NormalisedInput): boolean {
  return resume.length > 0 && resume.every(({ status }) => status === 'cancelled')
}

/**
 * Whether a request gives up exactly what the thread's last run has answered without coming to a good end. Official clients keep their interrupts
 * until they see a run finish, and send nothing that leaves them out: this is how they get on after a failure, a stop or a lost connection.
 */
function isSpent (input: NormalisedInput, last: Run | undefined): boolean {
  if (last === undefined || !givesUp(input) || !['failed', 'cancelled', 'lost'].includes(last.record.state) || detailOf(last.record).answers === undefined) return false
  const answered = new Set((inputOf(last.record).resume ?? []).map(({ interruptId }) => interruptId))
  return (input.resume ?? []).every(({ interruptId }) => answered.has(interruptId))
}
