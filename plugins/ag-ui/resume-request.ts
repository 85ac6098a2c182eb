import { type ResumeClaim, type Run } from '../../lib/runs/index.ts'
import { type InterruptRecord, type Owner } from '../../lib/stores/index.ts'
import { contractMessage } from './contract.ts'
import { RunErrorCode } from './errors.ts'
import { inputOf } from './protocol.ts'
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
  const { resume = [] } = input
  const named = resume.map(({ interruptId }) => interruptId)
  // Most runs neither answer anything nor can: if something is open after all, the engine refuses them.
  if (named.length === 0 && !input.messages.some(({ role }) => role === 'tool')) return { kind: 'read', input, answered: [] }
  const open = await engine.openInterrupts(owner, protocol.name, input.threadId)
  const last = open.length + named.length > 0 ? await engine.lastOf(owner, protocol.name, input.threadId) : undefined
  if (last === undefined) return answersTo(input, open, undefined, options)

  const spent = open.length === 0 ? spentIds(last) : undefined
  if (spent !== undefined && named.every((id) => spent.has(id))) {
    if (resume.every(({ status }) => status === 'cancelled')) return { kind: 'read', input, answered: [] }
    if (last.record.state === 'lost') return { kind: 'refused', code: RunErrorCode.contract, message: contractMessage({ kind: 'expired', open, missing: [], ids: named }) }
  }
  return answersTo(input, open, last, options)
}

function answersTo (input: NormalisedInput, open: readonly InterruptRecord[], last: Run | undefined, options: AgUiScope['options']): ReadAnswers {
  const view = viewOf(last)
  const resume = resumeOf(input, open, view.interrupts, options)
  if (resume.kind === 'refused') return resume
  if (resume.kind === 'none') return { kind: 'read', input, answered: [] }
  const { claim, answered } = resume.answers
  return { kind: 'read', input: resumedInput(input, answered, view), answered, claim }
}

/**
 * Interrupts that a client may still believe to be open although nobody can answer them any more: what the thread's last run has answered without coming to
 * a good end, or has asked before its server was lost (R14). Official clients keep interrupts until they see a run finish, and start none that leaves
 * one out: giving them up is how they get on.
 */
function spentIds (last: Run): ReadonlySet<string> {
  const { record } = last
  switch (record.state) {
    case 'failed':
    case 'cancelled':
    case 'lost': {
      const { resume = [] } = inputOf(record)
      return new Set([...resume.map(({ interruptId }) => interruptId), ...viewOf(last).interrupts.keys()])
    }
    default: return new Set()
  }
}
