import { Check } from '@sinclair/typebox/value'
import { BlockTrack } from './block-track.ts'
import { CallTrack } from './call-track.ts'
import type { AgentEvent, AgentEventInit, AgentEventInitOf, AgentEventOf, AgentEventType } from './events.ts'
import type { MessageBuilder } from './message-builder.ts'
import { ModelTrack } from './model-track.ts'
import { deltaEvent, type DeltaType, type EmitEvent, eventId, eventTime, type OpenItem, type Outlet, type StampFields, takeText } from './open-item.ts'
import { PauseTrack } from './pause-track.ts'
import type { Repair, RepairReason } from './repair.ts'
import { newId } from './stamp.ts'
import { Usage } from './usage.ts'
import type { UsageMeter } from './usage-meter.ts'

/** What a channel needs of the {@link Normaliser}. */
export interface ChannelHost {
  readonly sessionId: string
  readonly usage: UsageMeter
  readonly known: ReadonlySet<string>
  readonly emit: EmitEvent
  /** The present, for events that bring no time. */
  readonly now: () => string
  /** Starts the root before anything of a child is told. */
  ensureStarted (): void
  repair (repair: Repair): void
}

/** How a delta names what it continues, and what it carries. */
export interface DeltaFields extends StampFields {
  readonly type: DeltaType
  readonly replyId?: string | undefined
  readonly blockId?: string | undefined
  readonly toolCallId: string
  readonly toolCallName?: string | undefined
  readonly delta: string
  readonly metadata?: unknown
}

const blockKinds = {
  TEXT_BLOCK_START: 'text',
  TEXT_BLOCK_DELTA: 'text',
  TEXT_BLOCK_END: 'text',
  THINKING_BLOCK_START: 'thinking',
  THINKING_BLOCK_DELTA: 'thinking',
  THINKING_BLOCK_END: 'thinking',
  DATA_BLOCK_START: 'data',
  DATA_BLOCK_DELTA: 'data',
  DATA_BLOCK_END: 'data'
} as const

/** All state of one source: the root's, or a child's (agent-events 9.3, invariant 9). */
export class Channel implements Outlet {
  readonly source: string | undefined
  readonly open: OpenItem[] = []
  readonly pauses: PauseTrack
  readonly #host: ChannelHost
  readonly #name: string
  readonly #message: MessageBuilder | undefined
  readonly #blocks: BlockTrack
  readonly #calls: CallTrack
  readonly #models: ModelTrack
  #isRunning = false
  #hasRun = false
  #replyId = newId()
  /** The reply that events without one belong to. */
  #step = ''

  constructor (host: ChannelHost, source: string | undefined, name: string, message: MessageBuilder | undefined) {
    this.#host = host
    this.source = source
    this.#name = name
    this.#message = message
    this.#blocks = new BlockTrack(this, message)
    this.#calls = new CallTrack(this, message, host.known)
    this.#models = new ModelTrack(this, host.usage, (item) => { this.#close(item) })
    this.pauses = new PauseTrack(this, this.#calls, message)
  }

  /** Id of the reply as a whole, the same before and after it starts unless the agent brings its own. */
  get replyId (): string {
    return this.#replyId
  }

  /** Takes any event but the root's AGENT_RESULT and AGENT_END. */
  handle (event: AgentEventInit): void {
    switch (event.type) {
      case 'AGENT_START': return this.#agentStart(event)
      case 'AGENT_END': return this.#agentEnd(event)
      case 'MODEL_CALL_START':
        this.#step = this.#models.start(event)
        return
      case 'MODEL_CALL_END': return this.#models.end(event)
      case 'TEXT_BLOCK_START': case 'THINKING_BLOCK_START': case 'DATA_BLOCK_START':
        return this.#blocks.start(blockKinds[event.type], event, this.#stepOf(event))
      case 'TEXT_BLOCK_END': case 'THINKING_BLOCK_END': case 'DATA_BLOCK_END':
        return this.#blocks.end(blockKinds[event.type], event)
      case 'TEXT_BLOCK_DELTA': case 'THINKING_BLOCK_DELTA': case 'DATA_BLOCK_DELTA':
      case 'TOOL_CALL_DELTA': case 'TOOL_RESULT_TEXT_DELTA':
        this.delta({ toolCallId: '', ...event })
        return
      case 'HINT_BLOCK': return this.#hint(event)
      case 'TOOL_CALL_START':
        return this.#calls.start(event, event.toolCallId || `call-${newId()}`, this.#stepOf(event))
      case 'TOOL_CALL_END': return this.#calls.end(event)
      case 'TOOL_RESULT_START': return this.#calls.startResult(event, this.#stepOf(event))
      case 'TOOL_RESULT_DATA_DELTA': return this.#resultData(event)
      case 'TOOL_RESULT_END':
        if (event.state !== 'running') this.pauses.answer(event.toolCallId)
        return this.#calls.endResult(event, this.#stepOf(event))
      case 'REQUIRE_USER_CONFIRM': case 'REQUIRE_EXTERNAL_EXECUTION': case 'REQUIRE_INPUT':
        return this.pauses.require(event, this.#stepOf(event))
      case 'USER_CONFIRM_RESULT':
        for (const { toolCall } of event.confirmResults) this.pauses.answer(toolCall.id)
        return this.send({ ...event, replyId: this.#stepOf(event) })
      case 'EXTERNAL_EXECUTION_RESULT':
        for (const { id } of event.toolResults) this.pauses.answer(id)
        return this.send({ ...event, replyId: this.#stepOf(event) })
      case 'EXCEED_MAX_ITERS': return this.send({ ...event, replyId: this.#stepOf(event) })
      case 'AGENT_RESULT':
        this.closeAll()
        this.noteResult(event)
        return this.send(event)
      case 'CUSTOM':
        if (event.name === 'usage' && Check(Usage, event.value)) this.#host.usage.total(this.source, event.value)
        return this.send(event)
      case 'REQUEST_STOP': case 'ALL_TOOLS_DENIED': case 'SUBAGENT_EXPOSED': return this.send(event)
    }
  }

  /** Takes a delta; gives the item that it continued, if there is one, for the fast path of the next. */
  delta (event: DeltaFields): OpenItem | undefined {
    if (event.delta === '') {
      this.repair('dropped', 'empty', event.type)
      return undefined
    }
    const item = this.#itemOf(event)
    if (item !== undefined) this.append(item, event.delta, event)
    return item
  }

  /** Tells a delta of an open item. */
  append (item: OpenItem, delta: string, init: StampFields & { readonly metadata?: unknown }): void {
    const text = takeText(item, delta)
    if (text !== '') this.sendDelta(item, text, init)
  }

  sendDelta (item: OpenItem, text: string, init: StampFields & { readonly metadata?: unknown }): void {
    if (item.isBlank) item.isBlank = text.trim() === ''
    if (item.part !== undefined) item.part.text += text
    else if (item.kind === 'call') this.#calls.append(item, text)
    const event = deltaEvent(item, text, init, this.#host.now)
    // Decoded: metadata is an object or absent.
    if (init.metadata !== undefined) event.metadata = init.metadata as NonNullable<AgentEvent['metadata']>
    this.#host.emit(event)
  }

  send (event: AgentEventInit): void {
    this.ensureStarted()
    this.#emit(event)
  }

  /** Takes the usage of a result; it counts if no model call reported any. */
  noteResult ({ result }: AgentEventInitOf<'AGENT_RESULT'>): void {
    if (result.usage !== undefined) this.#host.usage.total(this.source, result.usage)
  }

  repair (action: Repair['action'], reason: RepairReason, type: AgentEventType, key?: string): void {
    this.#host.repair({
      action, reason, type, ...this.source !== undefined && { source: this.source }, ...key !== undefined && { key }
    })
  }

  /** Starts the source with the agent's own event, or one made up. */
  ensureStarted (): void {
    if (this.#isRunning) return
    this.repair('inserted', 'missing-start', 'AGENT_START')
    this.#start({ type: 'AGENT_START' })
  }

  /** Closes whatever is open, innermost first. */
  closeAll (): void {
    for (let item = this.open.at(-1); item !== undefined; item = this.open.at(-1)) this.#close(item)
  }

  /** Ends a child that the end of the stream left running. */
  abandon (): void {
    if (!this.#isRunning) return
    this.repair('closed', 'missing-end', 'AGENT_END')
    this.finish({ type: 'AGENT_END', reason: 'INTERRUPTED' })
  }

  /** Closes whatever is open and ends the source. */
  finish (event: AgentEventInitOf<'AGENT_END'>): void {
    this.closeAll()
    this.#emit({ ...event, replyId: this.#replyId })
    this.#isRunning = false
  }

  #agentStart (event: AgentEventInitOf<'AGENT_START'>): void {
    const isAgain = !event.replyId || event.replyId === this.#replyId
    if (this.#isRunning && (this.source === undefined || isAgain)) return this.repair('dropped', 'duplicate', event.type)
    if (this.#isRunning) {
      this.repair('closed', 'missing-end', 'AGENT_END')
      this.finish({ type: 'AGENT_END' })
    }
    this.#start(event)
  }

  #start (event: AgentEventInitOf<'AGENT_START'>): void {
    if (this.source !== undefined) this.#host.ensureStarted()
    this.#isRunning = true
    this.#replyId = this.#step = event.replyId || (this.#hasRun ? newId() : this.#replyId)
    this.#hasRun = true
    this.#emit({
      ...event, sessionId: event.sessionId || this.#host.sessionId, replyId: this.#replyId, name: event.name || this.#name, role: event.role || 'assistant'
    })
  }

  #agentEnd (event: AgentEventInitOf<'AGENT_END'>): void {
    if (this.#isRunning) this.finish(event)
    else this.repair('dropped', 'not-open', event.type)
  }

  #hint (event: AgentEventInitOf<'HINT_BLOCK'>): void {
    const replyId = this.#stepOf(event)
    const blockId = this.#blocks.uniqueId(replyId, event.blockId || 'hint')
    const part = this.#message?.add('hint', blockId, event.hintSource)
    if (part !== undefined) part.text = event.hint
    this.send({ ...event, replyId, blockId })
  }

  #resultData (event: AgentEventInitOf<'TOOL_RESULT_DATA_DELTA'>): void {
    const item = this.#calls.continueResult(event.type, event, this.#stepOf(event))
    if (item !== undefined) this.#calls.dataDelta(event, item)
  }

  #itemOf (event: DeltaFields): OpenItem | undefined {
    const step = this.#stepOf(event)
    switch (event.type) {
      case 'TOOL_CALL_DELTA': return this.#calls.continue(event, step)
      case 'TOOL_RESULT_TEXT_DELTA': return this.#calls.continueResult(event.type, event, step)
      default: return this.#blocks.continue(blockKinds[event.type], event, step)
    }
  }

  #close (item: OpenItem): void {
    switch (item.kind) {
      case 'call':
        this.repair('closed', 'missing-end', 'TOOL_CALL_END', item.id)
        return this.#calls.closeCall(item)
      case 'result':
        this.repair('closed', 'missing-end', 'TOOL_RESULT_END', item.id)
        return this.#calls.closeResult(item, 'interrupted')
      case 'model':
        this.repair('closed', 'missing-end', 'MODEL_CALL_END', item.id)
        return this.#models.close(item, { type: 'MODEL_CALL_END' })
      default:
        this.repair('closed', 'missing-end', `${item.kind.toUpperCase() as 'TEXT'}_BLOCK_END`, item.id)
        return this.#blocks.close(item)
    }
  }

  /** The reply of an event; the source starts first, because its start names the reply of events that name none. */
  #stepOf ({ replyId }: { readonly replyId?: string | undefined }): string {
    this.ensureStarted()
    if (replyId) this.#step = replyId
    return this.#step
  }

  #emit (event: AgentEventInit): void {
    const { type, id, createdAt, source, ...rest } = event
    this.#host.emit({
      type, id: eventId(id), createdAt: eventTime(createdAt, this.#host.now), ...this.source !== undefined && { source: this.source }, ...rest
      // The members of an init of this type, and the stamps it lacked.
    } as AgentEventOf<typeof type> as AgentEvent)
  }
}
