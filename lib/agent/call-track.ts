import type { ToolResultState, ToolUseBlock } from './blocks.ts'
import { parseArguments } from './decode-message.ts'
import type { AgentEventInitOf } from './events.ts'
import { flushText, type MessageBuilder, type MessagePart } from './message-builder.ts'
import { type OpenItem, type Outlet, remove } from './open-item.ts'

/** What is known of one tool call. */
interface Call {
  readonly id: string
  name: string
  replyId: string
  /** Where the root's arguments are collected. */
  readonly part: MessagePart | undefined
  /** A child's raw arguments. */
  arguments: string
  metadata: MessagePart['metadata']
  /** While its arguments stream. */
  open: OpenItem | undefined
  /** While its result streams. */
  result: OpenItem | undefined
  state: ToolResultState | undefined
}

/** How an event names a call; `toolCallId` is empty when the agent gave none. */
export interface CallName {
  readonly replyId?: string | undefined
  readonly toolCallId: string
  readonly toolCallName?: string | undefined
}

type CallStart = AgentEventInitOf<'TOOL_CALL_START'>
type ResultEnd = AgentEventInitOf<'TOOL_RESULT_END'>

/** The tool calls and results of one source (agent-events 9.3, invariants 2 to 5). */
export class CallTrack {
  readonly #outlet: Outlet
  readonly #message: MessageBuilder | undefined
  readonly #known: ReadonlySet<string>
  readonly #calls = new Map<string, Call>()

  /** `known` are calls that an earlier execution announced. */
  constructor (outlet: Outlet, message: MessageBuilder | undefined, known: ReadonlySet<string>) {
    this.#outlet = outlet
    this.#message = message
    this.#known = known
  }

  start (event: CallStart, id: string, step: string): void {
    const { open, result } = this.#calls.get(id) ?? {}
    if (open?.isBlank) return this.#outlet.repair('dropped', 'duplicate', event.type, id)
    if (open !== undefined) this.#closeEarly(open)
    if (result !== undefined) {
      this.#outlet.repair('closed', 'missing-end', 'TOOL_RESULT_END', id)
      this.closeResult(result, 'interrupted')
    }
    this.#begin(event, id, step)
  }

  /** The call that a delta continues, announced if it is not; undefined when it is over or has no name. */
  continue (name: CallName, step: string): OpenItem | undefined {
    const call = this.#calls.get(name.toolCallId)
    if (call !== undefined) return call.open ?? this.#late('TOOL_CALL_DELTA', call.id)
    const last = name.toolCallId === '' ? this.#last('call') : undefined
    if (last !== undefined) return last
    if (name.toolCallId === '') return this.#late('TOOL_CALL_DELTA', '')
    this.#outlet.repair('inserted', 'missing-start', 'TOOL_CALL_START', name.toolCallId)
    return this.#begin({ type: 'TOOL_CALL_START', ...withName(name) }, name.toolCallId, step)
  }

  end (event: AgentEventInitOf<'TOOL_CALL_END'>): void {
    const item = event.toolCallId === '' ? this.#last('call') : this.#calls.get(event.toolCallId)?.open
    if (item === undefined) this.#outlet.repair('dropped', 'not-open', event.type, event.toolCallId)
    else this.closeCall(item, event)
  }

  startResult (event: AgentEventInitOf<'TOOL_RESULT_START'>, step: string): void {
    const call = this.#calls.get(event.toolCallId)
    const isAnswered = call?.state !== undefined && call.state !== 'running'
    if (isAnswered || call?.result !== undefined) this.#outlet.repair('dropped', 'duplicate', event.type, event.toolCallId)
    else if (event.toolCallId === '') this.#outlet.repair('dropped', 'invalid', event.type)
    else this.#beginResult(event, step)
  }

  /** The result that a delta continues, begun if it is not; undefined when it is over or has no name. */
  continueResult (type: 'TOOL_RESULT_TEXT_DELTA' | 'TOOL_RESULT_DATA_DELTA', name: CallName, step: string): OpenItem | undefined {
    if (name.toolCallId === '') return this.#last('result') ?? this.#late(type, '')
    const call = this.#calls.get(name.toolCallId)
    if (call?.result !== undefined) return call.result
    if (call?.state !== undefined) return this.#late(type, call.id)
    this.#outlet.repair('inserted', 'missing-start', 'TOOL_RESULT_START', name.toolCallId)
    return this.#beginResult({ type: 'TOOL_RESULT_START', ...withName(name) }, step)
  }

  dataDelta (event: AgentEventInitOf<'TOOL_RESULT_DATA_DELTA'>, item: OpenItem): void {
    this.#flush(item)
    if (item.part !== undefined) {
      flushText(item.part)
      item.part.output.push(event.data)
    }
    this.#outlet.send({ ...event, ...namesOf(item) })
  }

  endResult (event: ResultEnd, step: string): void {
    if (event.toolCallId === '') return this.#endLast(event)
    const call = this.#calls.get(event.toolCallId)
    const isExpected = call === undefined ? this.#known.has(event.toolCallId) : call.state === undefined
    // The end of a result that never began still tells the call's state: dropping it would leave the call unanswered.
    const item = call?.result ?? (isExpected ? this.continueResult('TOOL_RESULT_TEXT_DELTA', event, step) : undefined)
    if (item === undefined) this.#outlet.repair('dropped', 'not-open', event.type, event.toolCallId)
    else this.closeResult(item, event.state, event)
  }

  closeCall (item: OpenItem, event?: AgentEventInitOf<'TOOL_CALL_END'>): void {
    const call = this.#call(item)
    this.#flush(item)
    if (item.isBlank) {
      this.#outlet.repair('inserted', 'missing-arguments', 'TOOL_CALL_DELTA', item.id)
      this.#outlet.sendDelta(item, '{}', {})
    }
    call.open = undefined
    remove(this.#outlet.open, item)
    if (event?.metadata !== undefined) setMetadata(call, item, event.metadata)
    this.#outlet.send({ ...event, type: 'TOOL_CALL_END', ...namesOf(item) })
  }

  closeResult (item: OpenItem, state: ToolResultState, event?: ResultEnd): void {
    const call = this.#call(item)
    this.#flush(item)
    call.result = undefined
    call.state = state
    remove(this.#outlet.open, item)
    if (item.part !== undefined) {
      item.part.state = state
      if (event?.metadata !== undefined) item.part.metadata = event.metadata
    }
    this.#outlet.send({ ...event, type: 'TOOL_RESULT_END', ...namesOf(item), state })
  }

  /** Collects the arguments of a child's call, for pauses. */
  append (item: OpenItem, text: string): void {
    this.#call(item).arguments += text
  }

  /** Announces the call of a pause if nobody did, ends its arguments, and fills the block from what was streamed. */
  complete (block: ToolUseBlock, step: string): ToolUseBlock {
    const call = this.#calls.get(block.id)
    if (call === undefined) this.#announce({ toolCallId: block.id, toolCallName: block.name }, step, block.content || JSON.stringify(block.input))
    else if (call.open !== undefined) this.#closeEarly(call.open)
    const streamed = call?.part?.text || call?.arguments
    const isBare = streamed !== undefined && block.content === undefined && Object.keys(block.input).length === 0
    const text = block.content ?? (isBare ? streamed : JSON.stringify(block.input))
    return {
      ...block,
      name: block.name || (call?.name ?? 'unknown'),
      input: isBare ? parseArguments(text) : block.input,
      content: text,
      metadata: { ...call?.metadata, ...block.metadata }
    }
  }

  #begin (event: Omit<CallStart, 'toolCallId'>, id: string, step: string): OpenItem {
    const replyId = event.replyId || step
    const name = event.toolCallName || (this.#calls.get(id)?.name ?? 'unknown')
    this.#outlet.send({ ...event, type: 'TOOL_CALL_START', replyId, toolCallId: id, toolCallName: name })
    const metadata = event.executor === undefined ? event.metadata : { ...event.metadata, executor: event.executor }
    const item = this.#open('call', id, name, replyId)
    if (item.part !== undefined) item.part.metadata = metadata
    this.#calls.set(id, { id, name, replyId, part: item.part, arguments: '', metadata, open: item, result: undefined, state: undefined })
    return item
  }

  #beginResult (event: AgentEventInitOf<'TOOL_RESULT_START'>, step: string): OpenItem {
    const id = event.toolCallId
    let call = this.#calls.get(id)
    if (call?.open !== undefined) this.#closeEarly(call.open)
    if (call === undefined) {
      this.#announce(event, step, '{}')
      call = this.#calls.get(id) ?? this.#adopt(event, step)
    }
    const name = event.toolCallName || call.name
    const replyId = event.replyId || step
    this.#outlet.send({ ...event, type: 'TOOL_RESULT_START', replyId, toolCallId: id, toolCallName: name })
    const item = this.#open('result', id, name, replyId)
    call.result = item
    call.state = undefined
    return item
  }

  #open (kind: 'call' | 'result', id: string, name: string, replyId: string): OpenItem {
    const item: OpenItem = {
      kind,
      deltaType: kind === 'call' ? 'TOOL_CALL_DELTA' : 'TOOL_RESULT_TEXT_DELTA',
      source: this.#outlet.source,
      replyId,
      id,
      name,
      rawId: undefined,
      key: id,
      held: '',
      isBlank: true,
      part: this.#message?.add(kind, id, name)
    }
    this.#outlet.open.push(item)
    return item
  }

  /** Tells a whole call at once, unless an earlier execution did. */
  #announce (name: CallName, step: string, args: string): void {
    if (this.#known.has(name.toolCallId)) return
    this.#outlet.repair('inserted', 'missing-call', 'TOOL_CALL_START', name.toolCallId)
    const item = this.#begin({ type: 'TOOL_CALL_START', ...withName(name) }, name.toolCallId, step)
    this.#outlet.sendDelta(item, args, {})
    this.closeCall(item)
  }

  #adopt (name: CallName, step: string): Call {
    const call: Call = {
      id: name.toolCallId, name: name.toolCallName || 'unknown', replyId: name.replyId || step, part: undefined, arguments: '', metadata: undefined, open: undefined, result: undefined, state: undefined
    }
    this.#calls.set(call.id, call)
    return call
  }

  #endLast (event: ResultEnd): void {
    const item = this.#last('result')
    if (item === undefined) this.#outlet.repair('dropped', 'not-open', event.type)
    else this.closeResult(item, event.state, event)
  }

  #closeEarly (item: OpenItem): void {
    this.#outlet.repair('closed', 'missing-end', 'TOOL_CALL_END', item.id)
    this.closeCall(item)
  }

  #flush (item: OpenItem): void {
    if (item.held === '') return
    item.held = ''
    this.#outlet.sendDelta(item, '\ufffd', {})
  }

  #late (type: 'TOOL_CALL_DELTA' | 'TOOL_RESULT_TEXT_DELTA' | 'TOOL_RESULT_DATA_DELTA', id: string): undefined {
    this.#outlet.repair('dropped', 'not-open', type, id)
  }

  #last (kind: 'call' | 'result'): OpenItem | undefined {
    return this.#outlet.open.findLast((item) => item.kind === kind)
  }

  #call (item: OpenItem): Call {
    // Every open item of this track was made together with its call.
    return this.#calls.get(item.id) as Call
  }
}

function setMetadata (call: Call, item: OpenItem, metadata: NonNullable<Call['metadata']>): void {
  call.metadata = { ...call.metadata, ...metadata }
  if (item.part !== undefined) item.part.metadata = call.metadata
}

function namesOf ({ replyId, id, name }: OpenItem): { replyId: string, toolCallId: string, toolCallName: string } {
  return { replyId, toolCallId: id, toolCallName: name }
}

function withName ({ replyId, toolCallId, toolCallName }: CallName): { replyId?: string, toolCallId: string, toolCallName?: string } {
  return { ...replyId !== undefined && { replyId }, toolCallId, ...toolCallName !== undefined && { toolCallName } }
}
