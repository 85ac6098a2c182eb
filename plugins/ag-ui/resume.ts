import { type Decision, isObject, type JsonObject, resolveDecisions, validateJson } from '../../lib/agent/index.ts'
import { checkNamed, type InterruptProblem, type ResumeClaim } from '../../lib/runs/index.ts'
import { type InterruptRecord } from '../../lib/stores/index.ts'
import { contractMessage } from './contract.ts'
import { RunErrorCode } from './errors.ts'
import { type Interrupt } from './event-schemas.ts'
import { interruptOf } from './interrupts.ts'
import { getTextContent } from './messages.ts'
import { type NormalisedInput, type ResumeEntry, type ToolMessage } from './schemas.ts'

/** What a model is told of a call that nobody answered in the end. */
export const CANCELLED_TEXT = 'The tool call was cancelled by the user.'

/** How answers are judged. */
export interface ResumeOptions {
  /** Whether answers to what is not open are passed over. */
  readonly lenientUnknown: boolean
  /** Whether approvals must fit their schema too; otherwise what is no `approved: true` is a denial. */
  readonly strictResponseSchema: boolean
}

/** Answers to everything that a thread waits for. */
export interface Answers {
  /** What the engine claims, all of it or nothing. */
  readonly claim: ResumeClaim
  /** The open interrupts as their client was told of them, by id. */
  readonly interrupts: Readonly<Record<string, Interrupt>>
  readonly records: readonly InterruptRecord[]
}

/** What a request means to the interrupts of its thread. */
export type Resume =
  | { readonly kind: 'none' }
  | { readonly kind: 'answered', readonly answers: Answers }
  | { readonly kind: 'refused', readonly code: string, readonly message: string }

/**
 * Turns the `resume` of a request into decisions about the thread's open interrupts (ag-ui 20.4), or says what is wrong with it (20.5). It
 * only looks: nothing is claimed, so that a refused answer can be corrected. The calls come from the store, never from the client.
 */
export function resumeOf (input: NormalisedInput, open: readonly InterruptRecord[], options: ResumeOptions): Resume {
  const entries = entriesOf(input, open, options)
  const problem = checkNamed(open, entries.map(({ interruptId }) => interruptId)) ?? expired(open, entries)
  if (problem !== undefined) return refused(contractMessage(problem))
  if (open.length === 0) return { kind: 'none' }

  const byId = new Map(open.map((record) => [record.id, record]))
  const answers = entries.flatMap((entry) => {
    const record = byId.get(entry.interruptId)
    return record === undefined ? [] : [{ record, entry }]
  })
  for (const { record, entry } of answers) {
    const mismatch = schemaMismatch(record, entry, options)
    if (mismatch !== undefined) return refused(mismatch)
  }
  const resolved = resolveDecisions(open.map(({ pending }) => pending), answers.map(({ record, entry }) => decisionOf(record, entry)))
  if (resolved.kind === 'rejected') {
    return { kind: 'refused', code: RunErrorCode.invalidInput, message: resolved.problems.map(({ message }) => message).join(' ') }
  }
  const { decisions } = resolved
  return {
    kind: 'answered',
    answers: {
      claim: { interrupts: open.map(({ id }) => id), decisions },
      interrupts: Object.fromEntries(open.map(({ id, pending, expiresAt }) => [id, interruptOf(pending, { id, expiresAt })])),
      records: open
    }
  }
}

function refused (message: string): Resume {
  return { kind: 'refused', code: RunErrorCode.contract, message }
}

/** The request's answers; where it has none, its tool messages count when they answer everything that waits (20.5, row 2: CopilotKit). */
function entriesOf ({ resume = [], messages }: NormalisedInput, open: readonly InterruptRecord[], { lenientUnknown }: ResumeOptions): readonly ResumeEntry[] {
  const ids = new Set(open.map(({ id }) => id))
  const entries = lenientUnknown ? resume.filter(({ interruptId }) => ids.has(interruptId)) : resume
  if (entries.length > 0) return entries
  const results = new Map(messages.flatMap((message) => message.role === 'tool' ? [[message.toolCallId, message] as const] : []))
  const answered = open.flatMap(({ id, pending }) => {
    const result = pending.kind === 'external' ? results.get(pending.toolCall.id) : undefined
    return result === undefined ? [] : [resultEntry(id, result)]
  })
  return answered.length === open.length ? answered : []
}

function resultEntry (interruptId: string, result: ToolMessage): ResumeEntry {
  return { interruptId, status: 'resolved', payload: getTextContent(result) || result.error || '' }
}

function expired (open: readonly InterruptRecord[], entries: readonly ResumeEntry[]): InterruptProblem | undefined {
  const resolved = new Set(entries.filter(({ status }) => status === 'resolved').map(({ interruptId }) => interruptId))
  const ids = open.filter(({ id, state }) => state === 'expired' && resolved.has(id)).map(({ id }) => id)
  return ids.length === 0 ? undefined : { kind: 'expired', open, missing: [], ids }
}

/** What is wrong with a payload, and where. An approval is lenient unless told otherwise: what is no yes is a no. */
function schemaMismatch ({ id, pending, expiresAt }: InterruptRecord, { status, payload = null }: ResumeEntry, { strictResponseSchema }: ResumeOptions): string | undefined {
  if (status !== 'resolved' || (pending.kind === 'confirm' && !strictResponseSchema)) return undefined
  const { responseSchema } = interruptOf(pending, { id, expiresAt })
  // It came out of the store, so it is JSON.
  const problem = responseSchema === undefined ? undefined : validateJson(responseSchema as JsonObject, payload)
  return problem === undefined ? undefined : `The payload for ${id} does not fit the interrupt's responseSchema: ${problem}`
}

function decisionOf ({ id, pending }: InterruptRecord, { status, payload }: ResumeEntry): Decision | Record<string, unknown> {
  const isResolved = status === 'resolved'
  switch (pending.kind) {
    case 'confirm': {
      const { approved, editedArgs, reason } = isResolved && isObject(payload) ? payload : {}
      return { kind: 'confirm', toolCallId: pending.toolCall.id, approved: approved === true, ...editedArgs !== undefined && { editedArgs }, reason }
    }
    case 'external': return {
      kind: 'result',
      toolCallId: pending.toolCall.id,
      output: isResolved ? textOf(payload) : CANCELLED_TEXT,
      state: isResolved ? 'success' : 'interrupted',
      metadata: { 'agui.interruptId': id, 'agui.resumeStatus': status }
    }
    case 'input': return { kind: 'input', requestId: pending.request.id, status, ...payload !== undefined && { payload } }
  }
}

function textOf (payload: unknown): string {
  if (payload === undefined || payload === null) return ''
  return typeof payload === 'string' ? payload : JSON.stringify(payload)
}
