import { type ContentBlock, type Decision, isObject, type JsonObject, pendingId, resolveDecisions, type ToolResultBlock, validateJson } from '../../lib/agent/index.ts'
import { checkNamed, type InterruptProblem, type ResumeClaim } from '../../lib/runs/index.ts'
import { type InterruptRecord } from '../../lib/stores/index.ts'
import { contractMessage } from './contract.ts'
import { RunErrorCode } from './errors.ts'
import { type Interrupt } from './event-schemas.ts'
import { interruptOf } from './interrupts.ts'
import { toMsgs } from './messages.ts'
import { type NormalisedInput, type ResumeEntry, type ToolMessage } from './schemas.ts'

/** What a model is told of a call that its user gave up. */
export const CANCELLED_TEXT = 'The tool call was cancelled by the user.'

/** How answers are judged. */
export interface ResumeOptions {
  /** Whether answers to what is not open are passed over. */
  readonly lenientUnknown: boolean
  /** Whether the answer to an approval must fit its schema; otherwise what is no `approved: true` is a denial. */
  readonly strictResponseSchema: boolean
}

/** One answer, with what the server knows of the question. */
export interface AnsweredInterrupt {
  readonly decision: Decision
  /** The interrupt as its client was told of it. */
  readonly interrupt: Interrupt
  /** The client has the call's result in its own transcript. */
  readonly isTold: boolean
}

/** Answers to everything that a thread waits for. */
export interface Answers {
  /** What the engine claims, all of it or nothing. */
  readonly claim: ResumeClaim
  /** In the order in which the questions were asked. */
  readonly answered: readonly AnsweredInterrupt[]
}

/** What a request means to the interrupts of its thread. */
export type Resume =
  | { readonly kind: 'none' }
  | { readonly kind: 'answered', readonly answers: Answers }
  | { readonly kind: 'refused', readonly code: string, readonly message: string }

/** An open interrupt. */
interface Question {
  readonly record: InterruptRecord
  readonly interrupt: Interrupt
  /** The client's own message with the result of a call that is executed outside. */
  readonly result: ToolMessage | undefined
}

/** A question and its answer. */
interface Pair extends Question {
  readonly entry: ResumeEntry
  /** Whether the client's message is the answer, as there is no entry. */
  readonly isByMessage: boolean
}

/**
 * Turns the `resume` of a request into decisions about the thread's open interrupts (ag-ui 20.4), or says what is wrong with it (20.5). It
 * only looks: nothing is claimed, so that a refused answer can be corrected. Calls are the store's copies, never the client's.
 * @param told the open interrupts as their client was told of them, by id; what is missing is made from the record
 */
export function resumeOf (input: NormalisedInput, open: readonly InterruptRecord[], told: ReadonlyMap<string, Interrupt>, options: ResumeOptions): Resume {
  const results = new Map(input.messages.flatMap((message) => message.role === 'tool' ? [[message.toolCallId, message] as const] : []))
  const asked = new Map(open.map((record): [string, Question] => {
    const { id, pending, expiresAt } = record
    const interrupt = told.get(id) ?? interruptOf(pending, { id, expiresAt })
    return [id, { record, interrupt, result: pending.kind === 'external' ? results.get(interrupt.toolCallId ?? pending.toolCall.id) : undefined }]
  }))

  let entries = (input.resume ?? []).filter(({ interruptId }) => !options.lenientUnknown || asked.has(interruptId))
  // Row 2: tool messages answer too where they answer everything, as CopilotKit has it.
  const isByMessage = entries.length === 0 && [...asked.values()].every(({ result }) => result !== undefined)
  if (isByMessage) entries = open.map(({ id }) => ({ interruptId: id, status: 'resolved' }))
  const problem = checkNamed(open, entries.map(({ interruptId }) => interruptId)) ?? expired(open, entries)
  if (problem !== undefined) return refused(contractMessage(problem))
  if (open.length === 0) return { kind: 'none' }

  const byId = new Map(entries.map((entry) => [entry.interruptId, entry]))
  const pairs = [...asked.values()].map((question): Pair => ({ ...question, isByMessage, entry: byId.get(question.record.id) as ResumeEntry })) // each is named
  for (const pair of pairs) {
    const mismatch = schemaMismatch(pair, options)
    if (mismatch !== undefined) return refused(mismatch)
  }
  const resolved = resolveDecisions(open.map(({ pending }) => pending), pairs.map(answerOf))
  if (resolved.kind === 'rejected') {
    return { kind: 'refused', code: RunErrorCode.invalidInput, message: resolved.problems.map(({ message }) => message).join(' ') }
  }
  const { decisions } = resolved
  return {
    kind: 'answered',
    answers: {
      claim: { interrupts: open.map(({ id }) => id), decisions, ...open[0] !== undefined && { run: open[0].run.id } },
      answered: decisions.map((decision, index) => {
        const { interrupt, result } = pairs[index] as Pair // as many, in the same order
        return { decision, interrupt, isTold: result !== undefined }
      })
    }
  }
}

function refused (message: string): Resume {
  return { kind: 'refused', code: RunErrorCode.contract, message }
}

function expired (open: readonly InterruptRecord[], entries: readonly ResumeEntry[]): InterruptProblem | undefined {
  const resolved = new Set(entries.filter(({ status }) => status === 'resolved').map(({ interruptId }) => interruptId))
  const ids = open.filter(({ id, state }) => state === 'expired' && resolved.has(id)).map(({ id }) => id)
  return ids.length === 0 ? undefined : { kind: 'expired', open, missing: [], ids }
}

/** What is wrong with a payload, and where. An approval is lenient unless told otherwise: what is no yes is a no. */
function schemaMismatch ({ record, interrupt, entry, isByMessage }: Pair, { strictResponseSchema }: ResumeOptions): string | undefined {
  const { responseSchema } = interrupt
  if (responseSchema === undefined || isByMessage || entry.status !== 'resolved' || (record.pending.kind === 'confirm' && !strictResponseSchema)) return undefined
  // It was stored, so it is JSON.
  const problem = validateJson(responseSchema as JsonObject, entry.payload ?? null)
  return problem === undefined ? undefined : `The payload for ${record.id} does not fit the interrupt's responseSchema: ${problem}`
}

/** The answer as `resolveDecisions` takes it. */
function answerOf ({ record: { id, pending }, entry: { status, payload }, result, isByMessage }: Pair): Readonly<Record<string, unknown>> {
  const isResolved = status === 'resolved'
  switch (pending.kind) {
    case 'confirm': {
      const { approved, editedArgs, reason } = isResolved && isObject(payload) ? payload : {}
      return { kind: 'confirm', toolCallId: pendingId(pending), approved: approved === true, editedArgs, reason }
    }
    case 'external': {
      const metadata = { 'agui.interruptId': id, 'agui.resumeStatus': status }
      const answer = isByMessage && result !== undefined ? messageResult(result) : { output: isResolved ? textOf(payload) : CANCELLED_TEXT, state: isResolved ? 'success' : 'interrupted' }
      return { kind: 'result', toolCallId: pendingId(pending), ...answer, metadata }
    }
    case 'input': return { kind: 'input', requestId: pendingId(pending), status, payload }
  }
}

/** What a client's own message says came of a call. */
function messageResult (message: ToolMessage): { readonly output: readonly ContentBlock[], readonly state: string } {
  const [block] = toMsgs([message]).messages.flatMap(({ content }) => content)
  const { output, state } = block as ToolResultBlock // what a tool message with an id becomes
  return { output, state }
}

function textOf (payload: unknown): string {
  if (payload === undefined || payload === null) return ''
  return typeof payload === 'string' ? payload : JSON.stringify(payload)
}
