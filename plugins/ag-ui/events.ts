import { type AgentEvent, type AgentEventOf, pendingId } from '../../lib/agent/index.ts'
import { type MappingConfig } from './config.ts'
import { AguiInputError, RunErrorCode, runError, runErrorOf } from './errors.ts'
import { type AgUiEvent } from './event-schemas.ts'
import { basePropertiesEnricher, type EventConverter, type StreamContext } from './extension.ts'
import { extraEvent } from './extras.ts'
import { OrderGuard } from './guard.ts'
import { IdPool } from './ids.ts'
import { type Profile, resolveProfile } from './input.ts'
import { runStarted } from './lifecycle.ts'
import { MessageBlocks } from './message-blocks.ts'
import { type SkippedPart } from './messages.ts'
import { Outgoing } from './outgoing.ts'
import { Replies } from './replies.ts'
import { type ResumedCall } from './resumed-run.ts'
import { type NormalisedInput } from './schemas.ts'
import { type EmitLine, type EventSink, JsonSink } from './sink.ts'
import { sourceOf, subagentEvent } from './subagents.ts'
import { type RunEnd, terminalOf } from './terminal.ts'
import { ToolCalls } from './tool-calls.ts'
import { UsageMeter } from './usage.ts'

/** What a mapping is told about its run. */
export interface MappingRun {
  readonly input: NormalisedInput
  /** @default by `input.protocolVersion` and the option */
  readonly profile?: Profile
  /** Names of the tools that run in the page, as far as the merge mode let them in. @default those of `input.tools` */
  readonly clientTools?: ReadonlySet<string>
  /** Calls announced before this run that may get their result in it, beside those of `input.messages`. @default none */
  readonly knownCalls?: ReadonlySet<string>
  /** Calls that were answered for this run. @default none */
  readonly resumed?: readonly ResumedCall[]
  /** Parts of the newest user message that were left out, to be told to the page. @default none */
  readonly skipped?: readonly SkippedPart[]
  /** Milliseconds since 1970. @default Date.now */
  readonly now?: () => number
  /** Told what was mended or left out, in constant words. @default nobody */
  readonly warn?: (reason: string) => void
}

/** Translates one run of an agent into AG-UI events, in order and synchronously. It has state and does no I/O. */
export interface Mapping {
  /** Emits RUN_STARTED: the page sees life before the agent's first word. */
  open (): void
  /** Takes the next event of a well-formed stream. @throws what a converter or enricher throws; the run then ends with INTERNAL_ERROR, however it is closed */
  next (event: AgentEvent): void
  /** Ends what is open and emits the terminal. */
  close (end: RunEnd): void
}

/** A {@link Mapping} that writes lines of JSON, in the shape the run engine calls. */
export interface JsonProjection {
  open (emit: EmitLine): void
  next (event: AgentEvent, emit: EmitLine): void
  close (end: RunEnd, emit: EmitLine): void
}

/** Creates the mapping of one run (section 9). Use it for that run alone. */
export function createMapping (config: MappingConfig, run: MappingRun, sink: EventSink): Mapping {
  return new AgentMapping(config, run, sink)
}

/** Creates the mapping of one run with its events as JSON text. */
export function createProjection (config: MappingConfig, run: MappingRun): JsonProjection {
  const sink = new JsonSink()
  const mapping = new AgentMapping(config, run, sink)
  return {
    open (emit) {
      sink.emit = emit
      mapping.open()
    },
    next (event, emit) {
      sink.emit = emit
      mapping.next(event)
    },
    close (end, emit) {
      sink.emit = emit
      mapping.close(end)
    }
  }
}

class AgentMapping implements Mapping {
  readonly #config: MappingConfig
  readonly #run: MappingRun
  readonly #profile: Profile
  readonly #guard: OrderGuard
  readonly #out: Outgoing
  readonly #ids: IdPool
  readonly #replies: Replies
  readonly #text: MessageBlocks
  readonly #reasoning: MessageBlocks
  readonly #calls: ToolCalls
  readonly #usage = new UsageMeter()
  readonly #converters = new Map<string, EventConverter>()
  readonly #context: StreamContext
  readonly #now: () => number
  /** Whether the agent has been asked at all. */
  #isFed = false
  /** What was thrown while converting; the run then ends in it. */
  #failure: { readonly thrown: unknown } | undefined

  constructor (config: MappingConfig, run: MappingRun, sink: EventSink) {
    const { input } = run
    const { threadId, runId } = input
    this.#config = config
    this.#run = run
    this.#profile = run.profile ?? resolveProfile(input.protocolVersion, config.profile).profile
    this.#now = run.now ?? Date.now
    const warn = once(run.warn ?? (() => {}))
    this.#guard = new OrderGuard(sink, {
      threadId, runId, finishedAfterError: config.emitRunFinishedAfterError, onViolation: (type, rule) => { warn(`${type}: ${rule}`) }
    })
    const enrichers = config.baseEventPropertiesEnricherEnabled ? [...config.eventEnrichers, basePropertiesEnricher(this.#now)] : config.eventEnrichers
    this.#out = new Outgoing(this.#guard, enrichers, config.eventConverters.length > 0)
    for (const converter of config.eventConverters) for (const type of converter.eventTypes) this.#converters.set(type, converter)
    this.#ids = new IdPool(runId, input.messages.map(({ id }) => id))
    this.#replies = new Replies(this.#ids)
    this.#text = new MessageBlocks('TEXT_MESSAGE', this.#out)
    this.#reasoning = new MessageBlocks('REASONING_MESSAGE', this.#out)
    this.#calls = new ToolCalls(this.#out, this.#replies, this.#ids, {
      config,
      profile: this.#profile,
      runId,
      clientTools: run.clientTools ?? new Set(input.tools.map(({ name }) => name)),
      earlier: earlierCalls(input, run),
      resumed: new Map((run.resumed ?? []).map((call) => [call.id, call])),
      warn
    })
    const usage = this.#usage
    this.#context = {
      threadId,
      runId,
      input,
      profile: this.#profile,
      config,
      get usage () { return usage.total },
      emit: (event) => { this.#out.foreign(event) },
      closeMessages: () => { this.#closeMessages() },
      closeToolCalls: () => { this.#calls.endAll() }
    }
  }

  open (): void {
    this.#guarded(() => {
      this.#out.event(runStarted(this.#run.input, this.#config, this.#profile))
      for (const { messageId, partType, index } of this.#run.skipped ?? []) {
        this.#out.event({ type: 'CUSTOM', name: 'agentscope.content_skipped', value: { messageId, partType, index } })
      }
    })
  }

  next (event: AgentEvent): void {
    if (this.#failure !== undefined || this.#guard.isEnded) return
    this.#isFed = true
    // No closure here: this is called for each token.
    try {
      this.#convert(event)
      this.#out.flush(event, this.#context)
    } catch (error) {
      this.#failure = { thrown: error }
      throw error
    }
  }

  close (end: RunEnd): void {
    if (this.#guard.isEnded) return
    if (this.#failure !== undefined) return this.#closeFailed(this.#failure.thrown)
    try {
      this.#guarded(() => {
        const terminal = terminalOf(end, {
          input: this.#run.input,
          config: this.#config,
          profile: this.#profile,
          calls: this.#calls,
          usage: this.#config.emitRunUsage ? this.#usage.byModel : [],
          now: this.#now
        })
        for (const ending of this.#guard.closing(terminal.type === 'RUN_ERROR')) this.#out.event(ending)
        // An answer that nobody was given may have to be given again.
        if (this.#isFed) this.#calls.tellResumed(new Set(end.kind === 'paused' ? end.pending.map(pendingId) : []))
        this.#out.event(terminal)
        if (terminal.type === 'RUN_ERROR') this.#finishAfterError(this.#out)
      })
    } catch (error) {
      // The end cannot be told, or foreign code threw at it: the run ends without that.
      this.#closeFailed(error)
    }
  }

  /** Runs a step of the framework's own and shows its events to the enrichers. Whatever throws spoils the run: half a conversion cannot be told. */
  #guarded (step: () => void): void {
    try {
      step()
      this.#out.flush(null, this.#context)
    } catch (error) {
      this.#failure = { thrown: error }
      throw error
    }
  }

  #closeFailed (thrown: unknown): void {
    const out = this.#out.abandon()
    if (!this.#guard.isStarted) out.event(runStarted(this.#run.input, { ...this.#config, echoInput: false }, this.#profile))
    for (const ending of this.#guard.closing(true)) out.event(ending)
    const known = thrown instanceof AguiInputError
    const { code, message } = runErrorOf({
      code: known ? thrown.code : RunErrorCode.internal, message: known ? thrown.message : 'The agent\'s events could not be converted.', cause: thrown
    }, this.#config.exposeErrors)
    out.event(runError(code, message, this.#now()))
    this.#finishAfterError(out)
  }

  #finishAfterError (out: EventSink): void {
    const { threadId, runId } = this.#run.input
    if (this.#config.emitRunFinishedAfterError) out.event({ type: 'RUN_FINISHED', threadId, runId })
  }

  #convert (event: AgentEvent): void {
    const source = event.source === undefined ? undefined : sourceOf(event)
    const converter = this.#converters.size === 0 ? undefined : this.#converters.get(event.type)
    if (converter !== undefined && (source === undefined || converter.handlesSubagent === true)) return converter.convert(event, this.#context)
    if (source === undefined) return this.#map(event, '')
    if (this.#config.subagentEvents === 'custom') {
      if (event.type === 'MODEL_CALL_END') this.#usage.add(event)
      return this.#emit(subagentEvent(event, source, { thinking: this.#config.subagentThinking, raw: this.#config.rawFallback }))
    }
    // Only the run itself starts and ends: a child's boundaries in the middle are fatal for every client.
    if (event.type !== 'AGENT_START' && event.type !== 'AGENT_END' && event.type !== 'AGENT_RESULT') this.#map(event, source)
  }

  /** @param scope the child the event is from, '' for the root */
  #map (event: AgentEvent, scope: string): void {
    switch (event.type) {
      case 'TEXT_BLOCK_DELTA': return this.#textDelta(event, scope)
      case 'THINKING_BLOCK_DELTA': return this.#thinkingDelta(event, scope)
      case 'TEXT_BLOCK_END': return this.#text.end(scope, event.replyId ?? '', event.blockId ?? '')
      case 'THINKING_BLOCK_END': return this.#reasoning.end(scope, event.replyId ?? '', event.blockId ?? '')
      case 'TOOL_CALL_START':
        this.#text.endReply(scope, event.replyId ?? '')
        this.#reasoning.endReply(scope, event.replyId ?? '')
        return this.#calls.start(scope, event)
      case 'TOOL_CALL_DELTA': return this.#calls.delta(scope, event)
      case 'TOOL_CALL_END': return this.#calls.end(scope, event.toolCallId)
      case 'TOOL_RESULT_TEXT_DELTA': return this.#calls.result(scope, event.toolCallId).addText(event.delta)
      case 'TOOL_RESULT_DATA_DELTA': return this.#calls.result(scope, event.toolCallId).addBlock(event.data)
      case 'TOOL_RESULT_END': return this.#calls.finish(scope, event)
      case 'MODEL_CALL_END': {
        const usage = this.#usage.add(event)
        return this.#emit(this.#config.emitTokenUsage ? usage : undefined)
      }
      case 'AGENT_RESULT':
        return this.#calls.noteSuspended(event.result)
      case 'AGENT_START':
      case 'AGENT_END':
      case 'MODEL_CALL_START':
      case 'TEXT_BLOCK_START':
      case 'THINKING_BLOCK_START':
      case 'TOOL_RESULT_START':
      case 'REQUIRE_USER_CONFIRM':
      case 'REQUIRE_EXTERNAL_EXECUTION':
      case 'REQUIRE_INPUT':
      case 'USER_CONFIRM_RESULT':
      case 'EXTERNAL_EXECUTION_RESULT':
        // Told by what comes of them: lazily opened messages, results, the outcome's interrupts.
        return
      case 'CUSTOM':
        return this.#emit({ type: 'CUSTOM', name: event.name, value: event.value ?? null })
      default:
        return this.#emit(extraEvent(event, this.#config))
    }
  }

  #textDelta (event: AgentEventOf<'TEXT_BLOCK_DELTA'>, scope: string): void {
    const { replyId = '', blockId = '', delta } = event
    const open = this.#text.find(scope, replyId, blockId)
    if (open !== undefined) return this.#out.delta(open, delta)
    if (delta === '') return
    this.#reasoning.endReply(scope, replyId)
    this.#out.delta(this.#text.start(scope, replyId, blockId, this.#replies.textMessage(scope, replyId, blockId)), delta)
  }

  #thinkingDelta (event: AgentEventOf<'THINKING_BLOCK_DELTA'>, scope: string): void {
    if (!(scope === '' ? this.#config.enableReasoning : this.#config.subagentThinking)) return
    const { replyId = '', blockId = '', delta } = event
    const open = this.#reasoning.find(scope, replyId, blockId)
    if (open !== undefined) return this.#out.delta(open, delta)
    if (delta === '') return
    this.#text.endReply(scope, replyId)
    const wanted = `${replyId}-reasoning`
    const id = this.#ids.take(this.#ids.has(wanted) ? `${wanted}:${blockId}` : wanted)
    this.#out.delta(this.#reasoning.start(scope, replyId, blockId, id), delta)
  }

  #emit (event: AgUiEvent | undefined): void {
    if (event !== undefined) this.#out.event(event)
  }

  #closeMessages (): void {
    this.#text.endAll()
    this.#reasoning.endAll()
  }
}

/** Calls of earlier runs: true where the transcript holds their result. */
function earlierCalls (input: NormalisedInput, { knownCalls, resumed = [] }: MappingRun): Map<string, boolean> {
  const calls = new Map<string, boolean>()
  for (const id of knownCalls ?? []) calls.set(id, false)
  for (const { wireId } of resumed) calls.set(wireId, false)
  for (const message of input.messages) {
    if (message.role === 'assistant') for (const call of message.toolCalls ?? []) calls.set(call.id, false)
  }
  for (const message of input.messages) {
    if (message.role === 'tool' && calls.has(message.toolCallId)) calls.set(message.toolCallId, true)
  }
  return calls
}

/** Says each thing once a run: a fault of the agent repeats itself with every event. */
function once (warn: (reason: string) => void): (reason: string) => void {
  const said = new Set<string>()
  return (reason) => {
    if (said.has(reason)) return
    said.add(reason)
    warn(reason)
  }
}
