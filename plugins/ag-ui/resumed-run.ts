import { type ContentBlock, type JsonObject, type Msg, type ToolResultState } from '../../lib/agent/index.ts'
import { type Run } from '../../lib/runs/index.ts'
import { type AgUiEvent, type Interrupt } from './event-schemas.ts'
import { inputOf } from './protocol.ts'
import { type AnsweredInterrupt } from './resume.ts'
import { type Message, type NormalisedInput } from './schemas.ts'

/** A call of an earlier run that was answered for this one; plain JSON, as it is stored with the run (R11). */
export interface ResumedCall {
  /** The agent's own id. */
  readonly id: string
  /** The id that the client knows the call by. */
  readonly wireId: string
  /** The arguments it runs with, where its user changed them. */
  readonly editedArgs?: JsonObject
  /** What came of it outside, to be told at the end of the run unless the agent tells something else. */
  readonly result?: { readonly messageId: string, readonly output: readonly ContentBlock[], readonly state: ToolResultState }
  /** The client has a result of its own: another one would be a second. */
  readonly isTold?: true
}

/** Where a thread stands, as a client would be told of it. */
export interface ThreadView {
  readonly messages: readonly Message[]
  readonly state: { readonly value: unknown } | undefined
  /** What the last run told its client to answer, by id. */
  readonly interrupts: ReadonlyMap<string, Interrupt>
  /** The last run's request. */
  readonly request: NormalisedInput | undefined
}

/** Reads where a run left its thread. */
export function viewOf (run: Run | undefined): ThreadView {
  // Made by our own fold.
  const events = (run?.snapshot()?.events ?? []).map(({ data }) => JSON.parse(data) as AgUiEvent)
  const messages = events.find((event) => event.type === 'MESSAGES_SNAPSHOT')?.messages ?? []
  const state = events.find((event) => event.type === 'STATE_SNAPSHOT')
  const terminal = events.at(-1)
  const interrupts = terminal?.type === 'RUN_FINISHED' && terminal.outcome?.type === 'interrupt' ? terminal.outcome.interrupts : []
  return {
    messages,
    state: state === undefined ? undefined : { value: state.snapshot },
    interrupts: new Map(interrupts.map((interrupt) => [interrupt.id, interrupt])),
    request: run === undefined ? undefined : inputOf(run.record)
  }
}

/**
 * The request as it is run. One that brings answers and no messages goes on where the thread stands (R21). Results that a client has made
 * up for calls which wait for an approval are left out: CopilotKit sends its user's answer that way too (ag-ui 20.6).
 */
export function resumedInput (input: NormalisedInput, answered: readonly AnsweredInterrupt[], view: ThreadView): NormalisedInput {
  const asked = new Set(answered.flatMap(({ decision, interrupt: { toolCallId } }) => decision.kind === 'confirm' && toolCallId !== undefined ? [toolCallId] : []))
  const whole = input.messages.length > 0 ? input : withStored(input, view)
  return { ...whole, messages: whole.messages.filter((message) => message.role !== 'tool' || !asked.has(message.toolCallId)) }
}

function withStored (input: NormalisedInput, { messages, state, request = input }: ThreadView): NormalisedInput {
  return {
    ...input,
    messages: [...messages],
    tools: input.tools.length > 0 ? input.tools : request.tools,
    context: input.context.length > 0 ? input.context : request.context,
    ...input.state === undefined && state !== undefined && { state: state.value }
  }
}

/** What the stream of the next run has to know of the answers. */
export function resumedCalls (answered: readonly AnsweredInterrupt[]): ResumedCall[] {
  return answered.flatMap(({ decision, interrupt, isTold }): ResumedCall[] => {
    if (decision.kind === 'input') return []
    const call = { id: decision.toolCallId, wireId: interrupt.toolCallId ?? decision.toolCallId }
    if (decision.kind === 'confirm') return [{ ...call, ...decision.editedArgs !== undefined && { editedArgs: decision.editedArgs } }]
    return [{ ...call, result: { messageId: resultId(interrupt), output: decision.output, state: decision.state }, ...isTold && { isTold } }]
  })
}

/** What stands in the agent's transcript for each call that waited, by the client's id: its result, or nothing yet. */
export function answersByCall (answered: readonly AnsweredInterrupt[]): Map<string, Msg | undefined> {
  return new Map(answered.flatMap(({ decision, interrupt }): [string, Msg | undefined][] => {
    const { toolCallId } = interrupt
    if (toolCallId === undefined || decision.kind === 'input') return []
    if (decision.kind === 'confirm') return [[toolCallId, undefined]]
    const { toolName, output, state, metadata } = decision
    return [[toolCallId, {
      id: resultId(interrupt),
      role: 'TOOL',
      content: [{ type: 'tool_result', id: toolCallId, ...toolName !== undefined && { name: toolName }, output, state }],
      ...metadata !== undefined && { metadata }
    }]]
  }))
}

function resultId ({ id }: Interrupt): string {
  return `agui-resume-${id}`
}
