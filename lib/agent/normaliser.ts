import { Channel, type ChannelHost } from './channel.ts'
import { decodeFields } from './decode-event.ts'
import { type AgentEventInit, type AgentEventInitOf, isAgentEventType } from './events.ts'
import { type GenerateReason, isGenerateReason } from './generate-reason.ts'
import { type HotFields, hotFieldsOf, isDeltaType, nameOf, nothing } from './hot-fields.ts'
import { isObject, toJson, wellFormed } from './json.ts'
import { type Msg, MsgMetadata } from './message.ts'
import { MessageBuilder } from './message-builder.ts'
import { type DeltaType, type EmitEvent, type OpenItem, UNSTAMPED } from './open-item.ts'
import type { Pending } from './pending.ts'
import type { Repair, RepairReason } from './repair.ts'
import { timestamp } from './stamp.ts'
import type { Usage } from './usage.ts'
import { UsageMeter } from './usage-meter.ts'

/** Options of {@link Normaliser}. */
export interface NormaliserOptions {
  /** Name for an AGENT_START that the agent leaves out. */
  readonly agentName: string
  /** Session for an AGENT_START without one. */
  readonly sessionId: string
  /** Tool calls that an earlier execution of the run announced: their results need no call before them. @default none */
  readonly knownCalls?: ReadonlySet<string>
  /** Told of each change, synchronously; for logs and tests. */
  readonly onRepair?: (repair: Repair) => void
  /** The present in ISO 8601, for events that bring no time; whoever pushes many in a row need not read the clock for each. @default the clock */
  readonly now?: () => string
}

/** How a stream ended: the iterator returned, a {@link RunInterrupted} fired, or anything else went wrong. */
export type StreamEnd = { readonly kind: 'returned' } | { readonly kind: 'interrupted' } | { readonly kind: 'failed' }

/**
 * Makes whatever an agent yields a well-formed stream of events (agent-events 9.3): stamped, opened, closed, exactly one end,
 * for each source by itself. The push form of {@link runAgent}; `emit` is called synchronously and what it throws is passed on.
 *
 * AGENT_RESULT and AGENT_END of the root are kept until {@link Normaliser.end}: an agent that throws after them has failed.
 */
export class Normaliser {
  readonly #parts = new MessageBuilder()
  readonly #usage = new UsageMeter()
  readonly #channels = new Map<string, Channel>()
  readonly #root: Channel
  readonly #host: ChannelHost & { emit: EmitEvent }
  readonly #agentName: string
  #result: AgentEventInitOf<'AGENT_RESULT'> | undefined
  #end: AgentEventInitOf<'AGENT_END'> | undefined
  /** What the agent said about its stopping, short of an end. */
  #stop: GenerateReason | undefined
  #reason: GenerateReason = 'MODEL_STOP'
  #isOver = false
  // What the last delta continued and how it was named: the next one mostly repeats it. Copies, as agents may reuse an object.
  #hotItem: OpenItem | undefined
  #hotChannel: Channel
  #hotSource: unknown
  #hotReply: unknown
  #hotBlock: unknown
  #hotCall: unknown

  constructor (options: NormaliserOptions) {
    this.#agentName = options.agentName
    this.#host = {
      sessionId: options.sessionId,
      usage: this.#usage,
      known: options.knownCalls ?? new Set(),
      emit: discard,
      now: options.now ?? timestamp,
      ensureStarted: () => { this.#root.ensureStarted() },
      repair: options.onRepair ?? discard
    }
    this.#root = this.#hotChannel = new Channel(this.#host, undefined, options.agentName, this.#parts)
  }

  /** The root's message so far, or the one that the agent gave as its result. The getter builds it: not for each event. */
  get message (): Msg {
    const given = this.#result?.result
    if (given !== undefined) return given
    const usage = this.#usage.of(undefined)
    return {
      id: this.#root.replyId,
      name: this.#agentName,
      role: 'ASSISTANT',
      content: this.#parts.build(),
      metadata: {},
      timestamp: localTime(),
      ...usage !== undefined && { usage }
    }
  }

  /** What the root waits for. */
  get pending (): readonly Pending[] {
    return this.#root.pauses.pending
  }

  /** Tokens of the root and its children so far. */
  get usage (): Usage | undefined {
    return this.#usage.all
  }

  /** Why the reply ended; `MODEL_STOP` before {@link Normaliser.end}. */
  get reason (): GenerateReason {
    return this.#reason
  }

  /** The agent told its own end: what happens to it later, an abort for instance, cuts nothing off. */
  get hasEnded (): boolean {
    return this.#end !== undefined
  }

  /** Takes what the agent yielded. What is no event is dropped, never thrown at the caller. */
  push (event: unknown, emit: EmitEvent): void {
    // Members in variables: an object of them for each token would be the largest that is made for it.
    let type, source, replyId, blockId, toolCallId, toolCallName, delta, metadata, id, createdAt
    try {
      ({ type, source, replyId, blockId, toolCallId, toolCallName, delta, metadata, id, createdAt } = hotFieldsOf(event))
    } catch {
      return this.#drop('not-an-event', nothing) // A getter threw.
    }
    if (this.#end !== undefined || this.#isOver) return this.#drop('after-end', { type })
    this.#host.emit = emit
    const item = this.#hotItem
    const text = typeof delta === 'string' && metadata === undefined ? delta : undefined
    if (text !== undefined && item !== undefined && type === item.deltaType && source === this.#hotSource && replyId === this.#hotReply &&
      blockId === this.#hotBlock && toolCallId === this.#hotCall && text !== '') {
      this.#hotChannel.append(item, text, id === undefined && createdAt === undefined ? UNSTAMPED : { id, createdAt })
    } else if (text !== undefined && isDeltaType(type)) {
      this.#delta({ source, replyId, blockId, toolCallId, toolCallName, id, createdAt }, type, text)
    } else {
      this.#hotItem = undefined
      this.#pushAny(event)
    }
  }

  /**
   * Ends the stream, once. `returned` and `interrupted` close everything open, then tell AGENT_RESULT and AGENT_END;
   * `failed` closes only, the caller tells the failure.
   */
  end (how: StreamEnd, emit: EmitEvent): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#host.emit = emit
    const children = [...this.#channels.values()].reverse()
    if (how.kind === 'failed') {
      for (const child of children) child.closeAll()
      return this.#root.closeAll()
    }
    this.#root.ensureStarted()
    for (const child of children) child.abandon()
    this.#root.closeAll()
    this.#reason = this.#inferReason(how.kind)
    const result = this.message
    this.#root.send({
      ...this.#result, type: 'AGENT_RESULT', result: { ...result, metadata: { ...result.metadata, [MsgMetadata.generateReason]: this.#reason } }
    })
    this.#root.finish({ ...this.#end, type: 'AGENT_END', reason: this.#reason })
  }

  #delta (fields: HotFields, type: DeltaType, delta: string): void {
    const { source, replyId, blockId, toolCallId } = fields
    const channel = this.#channelOf(source)
    this.#hotItem = channel.delta({
      type,
      replyId: nameOf(replyId),
      blockId: nameOf(blockId),
      toolCallId: nameOf(toolCallId) ?? '',
      toolCallName: nameOf(fields.toolCallName),
      delta,
      id: fields.id,
      createdAt: fields.createdAt
    })
    this.#hotChannel = channel
    this.#hotSource = source
    this.#hotReply = replyId
    this.#hotBlock = blockId
    this.#hotCall = toolCallId
  }

  #pushAny (source: unknown): void {
    const value = readJson(source)
    if (!isObject(value)) return this.#drop('not-an-event', nothing)
    if (!isAgentEventType(value.type)) return this.#drop('unknown-type', value)
    if (value.type.startsWith('TOOL_')) value.toolCallId ??= ''
    if (isDeltaType(value.type)) value.delta ??= ''
    const event = decodeFields(value)
    if (event === undefined) return this.#drop('invalid', value)
    const channel = this.#channelOf(event.source)
    if (channel === this.#root) this.#pushRoot(event)
    else channel.handle(event)
  }

  #pushRoot (event: AgentEventInit): void {
    switch (event.type) {
      case 'AGENT_RESULT':
        if (this.#result !== undefined) this.#drop('duplicate', event)
        this.#result = event
        return this.#root.noteResult(event)
      case 'AGENT_END':
        this.#end = event
        return
      case 'REQUEST_STOP':
        this.#stop = event.generateReason ?? this.#stop
        break
      case 'EXCEED_MAX_ITERS':
        this.#stop = 'MAX_ITERATIONS'
        break
      case 'ALL_TOOLS_DENIED':
        this.#stop = 'ALL_TOOLS_DENIED'
        break
      default:
    }
    this.#root.handle(event)
  }

  #inferReason (kind: 'returned' | 'interrupted'): GenerateReason {
    const given = this.#result?.result.metadata?.[MsgMetadata.generateReason]
    const said = this.#end?.reason ?? (isGenerateReason(given) ? given : undefined)
    if (kind === 'interrupted') return this.#end?.reason ?? 'INTERRUPTED'
    if (said !== undefined) return said
    if (this.pending.length > 0) return this.pending.some((pending) => pending.kind === 'confirm') ? 'PERMISSION_ASKING' : 'TOOL_SUSPENDED'
    return this.#stop ?? 'MODEL_STOP'
  }

  #channelOf (source: unknown): Channel {
    if (typeof source !== 'string' || source === '') return this.#root
    const path = wellFormed(source)
    let channel = this.#channels.get(path)
    if (channel === undefined) {
      channel = new Channel(this.#host, path, path.slice(path.lastIndexOf('/') + 1), undefined)
      this.#channels.set(path, channel)
    }
    return channel
  }

  /** Takes copies only: what an agent yielded may throw when it is read. */
  #drop (reason: RepairReason, { type }: HotFields): void {
    this.#host.repair({ action: 'dropped', reason, ...typeof type === 'string' && { type } })
  }
}

function readJson (value: unknown): unknown {
  try {
    return toJson(value)
  } catch {
    return undefined // Cyclic, too deep, or a getter threw.
  }
}

/** The present as messages write it: local, without a zone. */
function localTime (): string {
  const now = new Date()
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, -1).replace('T', ' ')
}

function discard (): void {}
