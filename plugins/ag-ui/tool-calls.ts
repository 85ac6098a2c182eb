import { type AgentEventOf, type JsonObject, type Msg, textOf, type ToolResultState } from '../../lib/agent/index.ts'
import { type MappingConfig } from './config.ts'
import { IdPool } from './ids.ts'
import { type Profile } from './input.ts'
import { type Replies } from './replies.ts'
import { type DeltaBlock, deltaBlock, type EventSink } from './sink.ts'
import { type ResumedCall } from './resumed-run.ts'
import { resultContent, ToolResult } from './tool-result.ts'

interface Call {
  /** The id the client knows the call by: the agent's own, unless the agent used it twice. */
  readonly id: string
  readonly scope: string
  readonly replyId: string
  /** Runs in the page. */
  readonly client: boolean
  /** Not sent at all: an internal tool. */
  readonly hidden: boolean
  /** An earlier run has told it: what comes of it is told here. */
  readonly earlier: boolean
  /** Streaming its arguments; undefined once ended, or where an earlier run has streamed them. */
  block: DeltaBlock | undefined
  answered: boolean
}

/** What the calls of a run need to know. */
export interface ToolCallsInit {
  readonly config: MappingConfig
  readonly profile: Profile
  readonly runId: string
  readonly clientTools: ReadonlySet<string>
  /** Calls of earlier runs, by the client's ids: true where they have been answered. */
  readonly earlier: ReadonlyMap<string, boolean>
  /** Those of them that were answered for this run, by the agent's ids. */
  readonly resumed: ReadonlyMap<string, ResumedCall>
  readonly warn: (reason: string) => void
}

/** Tool calls and their results (sections 9.2-9.4, 19.2). */
export class ToolCalls {
  readonly #out: EventSink
  readonly #replies: Replies
  readonly #messageIds: IdPool
  readonly #callIds: IdPool
  readonly #init: ToolCallsInit
  readonly #calls = new Map<string, Call>()
  readonly #results = new Map<string, ToolResult>()
  readonly #suspended = new Map<string, string>()
  /** Calls of earlier runs whose result was told. */
  readonly #told = new Set<string>()

  constructor (out: EventSink, replies: Replies, messageIds: IdPool, init: ToolCallsInit) {
    this.#out = out
    this.#replies = replies
    this.#messageIds = messageIds
    this.#callIds = new IdPool(init.runId, init.earlier.keys())
    this.#init = init
  }

  start (scope: string, event: AgentEventOf<'TOOL_CALL_START'>): void {
    if (event.toolCallId.trim() === '') return this.#init.warn('TOOL_CALL_START without an id, left out')
    const key = keyOf(scope, event.toolCallId)
    const known = this.#calls.get(key)
    // A second start of a call that waits for its result is a repetition; after the result it is another call under a used id.
    if (known !== undefined && !known.answered) return
    const name = event.toolCallName?.trim() ? event.toolCallName : 'unknown'
    const replyId = event.replyId ?? ''
    const wireId = (scope === '' ? this.#init.resumed.get(event.toolCallId)?.wireId : undefined) ?? event.toolCallId
    const call: Call = {
      id: wireId,
      scope,
      replyId,
      hidden: name.startsWith('__'),
      client: event.executor === 'client' || (event.executor === undefined && this.#init.clientTools.has(name)),
      // Streamed by the run that asked for it: a client would append the arguments to those it has.
      earlier: known === undefined && this.#init.earlier.get(wireId) === false && !this.#told.has(key),
      block: undefined,
      answered: false
    }
    if (call.hidden || call.earlier) {
      this.#calls.set(key, call)
      return
    }
    const id = this.#callIds.take(wireId)
    const block = deltaBlock('TOOL_CALL_ARGS', id)
    this.#calls.set(key, { ...call, id, block })
    this.#out.event({ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, parentMessageId: this.#replies.parentOf(scope, replyId, id) })
  }

  delta (scope: string, event: AgentEventOf<'TOOL_CALL_DELTA'>): void {
    const call = this.#calls.get(keyOf(scope, event.toolCallId))
    if (call?.block === undefined || event.delta === '') return
    // A page cannot run its own tool without the arguments.
    if (this.#init.config.emitToolCallArgs || call.client) this.#out.delta(call.block, event.delta)
  }

  end (scope: string, toolCallId: string): void {
    const call = this.#calls.get(keyOf(scope, toolCallId))
    if (call !== undefined) this.#end(call)
  }

  endAll (): void {
    for (const call of this.#calls.values()) this.#end(call)
  }

  /** Collects a result's pieces: clients take a result whole. */
  result (scope: string, toolCallId: string): ToolResult {
    const key = keyOf(scope, toolCallId)
    let result = this.#results.get(key)
    if (result === undefined) this.#results.set(key, result = new ToolResult())
    return result
  }

  finish (scope: string, event: AgentEventOf<'TOOL_RESULT_END'>): void {
    if (event.toolCallId.trim() === '') return this.#init.warn('TOOL_RESULT_END without an id, left out')
    const key = keyOf(scope, event.toolCallId)
    const call = this.#calls.get(key)
    const result = this.result(scope, event.toolCallId)
    this.#results.delete(key)
    if (call?.hidden === true || (call === undefined && event.toolCallName?.startsWith('__') === true)) return
    if (call !== undefined) this.#end(call)
    if (event.state === 'running') {
      this.#suspended.set(event.toolCallId, result.text)
      return
    }
    const isEarlier = call?.earlier ?? true
    const resumed = isEarlier && scope === '' ? this.#init.resumed.get(event.toolCallId) : undefined
    if (call?.answered === true || resumed?.isTold === true || (isEarlier && this.#told.has(key))) return
    if (isEarlier) this.#told.add(key)
    if (call !== undefined) {
      call.answered = true
      this.#replies.answered(scope, call.replyId)
    }
    const replyId = event.replyId ?? ''
    this.#out.event({
      type: 'TOOL_CALL_RESULT',
      // Calls of one batch share their reply's id: alone it would name several messages.
      messageId: this.#messageIds.take(replyId === '' ? event.toolCallId : `${replyId}:${event.toolCallId}`),
      toolCallId: call?.id ?? resumed?.wireId ?? event.toolCallId,
      content: resultContent(result, event.state, this.#init.profile),
      role: 'tool',
      ...resultMetadata(event.state, resumed?.editedArgs)
    })
  }

  /** Tells what came from outside for calls that the agent has told nothing of: their transcript would stay open. @param pending the agent's ids of calls that wait again */
  tellResumed (pending: ReadonlySet<string>): void {
    for (const { id, wireId, result, isTold } of this.#init.resumed.values()) {
      if (result === undefined || isTold === true || this.#told.has(id) || pending.has(id)) continue
      const output = new ToolResult()
      for (const block of result.output) output.addBlock(block)
      this.#out.event({
        type: 'TOOL_CALL_RESULT',
        messageId: this.#messageIds.take(result.messageId),
        toolCallId: wireId,
        content: resultContent(output, result.state, this.#init.profile),
        role: 'tool',
        ...resultMetadata(result.state, undefined)
      })
    }
  }

  /** Reads from the agent's own result what its suspended calls say of themselves, where no event told it. */
  noteSuspended (message: Msg): void {
    for (const block of message.content) {
      if (block.type !== 'tool_result' || block.state !== 'running' || this.#suspended.get(block.id)) continue
      this.#suspended.set(block.id, textOf(block.output))
    }
  }

  /** Text of a result that waits for its answer, for the interrupt that says so. */
  suspensionText (toolCallId: string): string | undefined {
    return this.#suspended.get(toolCallId)
  }

  /** Whether a call runs in the page. */
  isClient (toolCallId: string, name: string): boolean {
    return this.#calls.get(toolCallId)?.client ?? this.#init.clientTools.has(name)
  }

  /** The id the client knows a root call by. */
  wireId (toolCallId: string): string {
    return this.#calls.get(toolCallId)?.id ?? this.#init.resumed.get(toolCallId)?.wireId ?? toolCallId
  }

  /** Calls for the page that this run has started and nobody has answered, in order. */
  get unansweredClientCalls (): string[] {
    return [...this.#calls.values()].flatMap((call) => call.client && !call.answered && !call.hidden ? [call.id] : [])
  }

  #end (call: Call): void {
    if (call.block === undefined) return
    call.block = undefined
    this.#out.event({ type: 'TOOL_CALL_END', toolCallId: call.id })
  }
}

function keyOf (scope: string, toolCallId: string): string {
  return scope === '' ? toolCallId : `${scope}\n${toolCallId}`
}

/** What a result's content does not say: that it is none, and that the call ran with other arguments than it was made with (section 20.4). */
function resultMetadata (state: ToolResultState, editedArgs: JsonObject | undefined): { metadata?: Record<string, unknown> } {
  if (state === 'success' && editedArgs === undefined) return {}
  return {
    metadata: {
      ...state !== 'success' && { 'agentscope.toolState': state.toUpperCase() },
      ...editedArgs !== undefined && { 'agentscope.editedArgs': editedArgs }
    }
  }
}
