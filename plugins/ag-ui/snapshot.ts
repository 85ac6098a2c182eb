import { type AgUiEvent, type AgUiEventOf } from './event-schemas.ts'
import { type Profile, resolveProfile } from './input.ts'
import { applyPatch } from './json-patch.ts'
import { legacyMessage, PROTOCOL_VERSION } from './lifecycle.ts'
import { type AssistantMessage, type Message, type NormalisedInput, type ToolCall } from './schemas.ts'
import { DELTA_END, DELTA_MIDDLE, DELTA_START } from './sink.ts'

/** Where a client stands that has watched a run from its start. Plain JSON: it is stored beside the run's log (R12). */
export interface TranscriptFold {
  readonly threadId: string
  readonly runId: string
  readonly parentRunId?: string
  readonly profile: Profile
  /** The transcript, in the client's order. */
  messages: Message[]
  /** Absent until somebody set it. */
  state?: { value: unknown }
  /** What is open: `kind\nid` -> the event that opened it. */
  readonly open: Record<string, AgUiEvent>
  /** The terminal, once there is one. */
  terminal?: AgUiEvent
}

/** Where a client stands when its run begins: it has sent these messages and this state itself. */
export function initialFold (input: NormalisedInput, profile: Profile = resolveProfile(input.protocolVersion).profile): TranscriptFold {
  return {
    threadId: input.threadId,
    runId: input.runId,
    ...input.parentRunId !== undefined && { parentRunId: input.parentRunId },
    profile,
    messages: structuredClone(profile === 'legacy' ? input.messages.map(legacyMessage) : input.messages),
    ...input.state !== undefined && { state: { value: structuredClone(input.state) } },
    open: {}
  }
}

/** Takes one event of the run's log into the fold, which it changes and returns. @param data the event's JSON, as this plugin wrote it */
export function stepFold (fold: TranscriptFold, data: string): TranscriptFold {
  if (appendsText(fold, data)) return fold
  // Only this plugin writes the log of its runs, and the guard let nothing else pass.
  const event = JSON.parse(data) as AgUiEvent
  apply(fold, event)
  return fold
}

/**
 * The shortest legal stream that brings a client who knows nothing to where the fold stands: RUN_STARTED, the transcript, the state, what is open
 * opened again, and the terminal where there is one. What follows in the log goes on from there.
 */
export function snapshotEvents (fold: TranscriptFold): AgUiEvent[] {
  const { threadId, runId, parentRunId, state } = fold
  // Without metadata: the message has it, and what came later must not be overwritten by the start's.
  const reopened = Object.values(fold.open).map(({ metadata: _, ...event }) => event as AgUiEvent) // metadata is optional in each
  const { messages, calls } = withoutOpenCalls(fold)
  return [
    { type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION, ...parentRunId !== undefined && { parentRunId } },
    { type: 'MESSAGES_SNAPSHOT', messages },
    ...state === undefined ? [] : [{ type: 'STATE_SNAPSHOT' as const, snapshot: state.value }],
    ...reopened.filter(({ type }) => type !== 'TOOL_CALL_START'),
    ...calls,
    ...fold.terminal === undefined ? [] : [fold.terminal]
  ]
}

/** What nearly all of a log is, a plain delta of the last message, is taken without parsing; answers whether it was that. */
function appendsText ({ messages }: TranscriptFold, data: string): boolean {
  const message = messages[messages.length - 1]
  if (message === undefined || message.role === 'activity' || typeof message.content !== 'string') return false
  const { TEXT_MESSAGE_CONTENT: text, REASONING_MESSAGE_CONTENT: reasoning } = DELTA_START
  const start = data.startsWith(text) ? text : data.startsWith(reasoning) ? reasoning : undefined
  const middle = `"${message.id}"${DELTA_MIDDLE}`
  if (start === undefined || !data.startsWith(middle, start.length) || !data.endsWith(DELTA_END)) return false
  const delta = data.slice(start.length + middle.length, -DELTA_END.length)
  // An escape, or a member behind the delta.
  if (delta.includes('"') || delta.includes('\\')) return false
  message.content += delta
  return true
}

function apply (fold: TranscriptFold, event: AgUiEvent): void {
  switch (event.type) {
    case 'RUN_FINISHED':
    case 'RUN_ERROR':
      fold.terminal = event
      return
    case 'TEXT_MESSAGE_START':
      opened(fold, 'text', event.messageId, event)
      return mergeMetadata(findOrAdd(fold, event.messageId, {
        id: event.messageId, role: event.role ?? 'assistant', content: '', ...event.name !== undefined && { name: event.name }, ...tag(event)
      }), event)
    case 'REASONING_MESSAGE_START':
      opened(fold, 'reasoning', event.messageId, event)
      return mergeMetadata(findOrAdd(fold, event.messageId, { id: event.messageId, role: 'reasoning', content: '', ...tag(event) }), event)
    case 'TEXT_MESSAGE_CONTENT':
    case 'REASONING_MESSAGE_CONTENT': {
      const message = find(fold, event.messageId)
      if (message === undefined || message.role === 'activity') return
      message.content = (typeof message.content === 'string' ? message.content : '') + event.delta
      return mergeMetadata(message, event)
    }
    case 'TEXT_MESSAGE_END':
    case 'REASONING_MESSAGE_END':
      closed(fold, event.type === 'TEXT_MESSAGE_END' ? 'text' : 'reasoning', event.messageId)
      return mergeMetadata(find(fold, event.messageId), event)
    case 'REASONING_START': return opened(fold, 'span', event.messageId, event)
    case 'REASONING_END': return closed(fold, 'span', event.messageId)
    case 'TOOL_CALL_START': return startCall(fold, event)
    case 'TOOL_CALL_ARGS': {
      const call = findCall(fold, event.toolCallId)
      if (call === undefined) return
      call.function.arguments += event.delta
      return mergeMetadata(call, event)
    }
    case 'TOOL_CALL_END':
      closed(fold, 'call', event.toolCallId)
      return mergeMetadata(findCall(fold, event.toolCallId), event)
    case 'TOOL_CALL_RESULT': return addResult(fold, event)
    case 'STATE_SNAPSHOT':
      fold.state = { value: event.snapshot }
      return
    case 'STATE_DELTA': {
      const patched = applyPatch(fold.state?.value, event.delta)
      if (patched !== undefined) fold.state = patched
      return
    }
    case 'MESSAGES_SNAPSHOT': return reconcile(fold, event.messages)
    case 'ACTIVITY_SNAPSHOT': return setActivity(fold, event)
    case 'ACTIVITY_DELTA': {
      const message = find(fold, event.messageId)
      if (message?.role !== 'activity') return
      mergeMetadata(message, event)
      const patched = applyPatch(message.content, event.patch)
      if (patched === undefined) return
      message.content = patched.value as typeof message.content // a client stores whatever comes of the patch
      message.activityType = event.activityType
      return
    }
    case 'REASONING_ENCRYPTED_VALUE': {
      const target = event.subtype === 'tool-call' ? findCall(fold, event.entityId) : find(fold, event.entityId)
      if (target !== undefined && !('role' in target && target.role === 'activity')) target.encryptedValue = event.encryptedValue
      return
    }
    case 'STEP_STARTED': return opened(fold, 'step', JSON.stringify([event.stepName, event.subagentRunId]), event)
    case 'STEP_FINISHED': return closed(fold, 'step', JSON.stringify([event.stepName, event.subagentRunId]))
    case 'SUBAGENT_STARTED': return opened(fold, 'subagent', event.subagentRunId, event)
    case 'SUBAGENT_FINISHED':
    case 'SUBAGENT_ERROR': return closed(fold, 'subagent', event.subagentRunId)
    case 'RUN_STARTED':
    case 'RAW':
    case 'CUSTOM':
    case 'TEXT_MESSAGE_CHUNK':
    case 'REASONING_MESSAGE_CHUNK':
    case 'TOOL_CALL_CHUNK':
    // Nothing that stays: the start is in the fold from the beginning, chunks are never written.
  }
}

function startCall (fold: TranscriptFold, event: AgUiEventOf<'TOOL_CALL_START'>): void {
  opened(fold, 'call', event.toolCallId, event)
  const known = findCall(fold, event.toolCallId)
  if (known !== undefined) {
    known.function.name = event.toolCallName
    return mergeMetadata(known, event)
  }
  const { parentMessageId } = event
  const parent = parentMessageId === undefined ? undefined : find(fold, parentMessageId)
  const id = parentMessageId === undefined || (parent !== undefined && parent.role !== 'assistant') ? event.toolCallId : parentMessageId
  const owner = parent?.role === 'assistant' ? parent : findOrAdd(fold, id, { id, role: 'assistant', toolCalls: [], ...tag(event) })
  const call: ToolCall = { id: event.toolCallId, type: 'function', function: { name: event.toolCallName, arguments: '' } }
  mergeMetadata(call, event)
  if (owner.role === 'assistant') (owner.toolCalls ??= []).push(call)
}

/** A result stands right after the message that asked for it and the results it has already, as providers want it. */
function addResult (fold: TranscriptFold, event: AgUiEventOf<'TOOL_CALL_RESULT'>): void {
  const message: Message = { id: event.messageId, role: 'tool', toolCallId: event.toolCallId, content: event.content, ...tag(event) }
  mergeMetadata(message, event)
  const { messages } = fold
  let index = messages.findIndex((other) => callIn(other, event.toolCallId) !== undefined)
  if (index === -1) index = messages.length
  else do index++; while (messages[index]?.role === 'tool')
  messages.splice(index, 0, message)
}

function setActivity (fold: TranscriptFold, event: AgUiEventOf<'ACTIVITY_SNAPSHOT'>): void {
  const index = fold.messages.findIndex(({ id }) => id === event.messageId)
  const known = fold.messages[index]
  const replaces = known === undefined || event.replace !== false
  const kept = known?.role === 'activity' ? known.metadata : undefined
  const message: Message = !replaces
    ? known
    : { id: event.messageId, role: 'activity', activityType: event.activityType, content: event.content, ...kept !== undefined && { metadata: kept }, ...tag(event) }
  if (known === undefined) fold.messages.push(message)
  else fold.messages[index] = message
  mergeMetadata(message, event)
}

/** What a client does with a snapshot: it keeps only its own activities and thoughts, and those only where the snapshot has none. */
function reconcile (fold: TranscriptFold, snapshot: readonly Message[]): void {
  const restated = new Map(snapshot.map((message) => [message.id, message]))
  const tracked = new Set(snapshot.map(({ role }) => role))
  const kept = fold.messages
    .filter(({ id, role }) => restated.has(id) || ((role === 'activity' || role === 'reasoning') && !tracked.has(role)))
    .map((message) => restated.get(message.id) ?? message)
  const ids = new Set(kept.map(({ id }) => id))
  fold.messages = [...kept, ...snapshot.filter(({ id }) => !ids.has(id))]
}

/**
 * The transcript without the calls that are still open, and the events that bring those back. Clients before 1.0 add a call twice when it is
 * in the transcript and started again; calls behind an open one in the same message are told as events too, so that their order stays.
 */
function withoutOpenCalls (fold: TranscriptFold): { readonly messages: Message[], readonly calls: AgUiEvent[] } {
  const calls: AgUiEvent[] = []
  const messages = fold.messages.map((message): Message => {
    const toolCalls = message.role === 'assistant' ? message.toolCalls : undefined
    const first = toolCalls?.findIndex(({ id }) => isOpen(fold, 'call', id)) ?? -1
    if (toolCalls === undefined || first === -1) return message
    for (const call of toolCalls.slice(first)) calls.push(...replayed(fold, message.id, call))
    return { ...message as AssistantMessage, toolCalls: toolCalls.slice(0, first) } // only an assistant has tool calls
  })
  return { messages, calls }
}

function replayed (fold: TranscriptFold, parentMessageId: string, { id, function: { name, arguments: text }, metadata, encryptedValue }: ToolCall): AgUiEvent[] {
  return [
    { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, parentMessageId, ...metadata !== undefined && { metadata } },
    ...text === '' ? [] : [{ type: 'TOOL_CALL_ARGS' as const, toolCallId: id, delta: text }],
    ...encryptedValue === undefined ? [] : [{ type: 'REASONING_ENCRYPTED_VALUE' as const, subtype: 'tool-call' as const, entityId: id, encryptedValue }],
    ...isOpen(fold, 'call', id) ? [] : [{ type: 'TOOL_CALL_END' as const, toolCallId: id }]
  ]
}

function find (fold: TranscriptFold, id: string): Message | undefined {
  // Nearly every event is about the last message.
  const last = fold.messages.at(-1)
  return last?.id === id ? last : fold.messages.find((message) => message.id === id)
}

function findOrAdd (fold: TranscriptFold, id: string, fresh: Message): Message {
  const known = find(fold, id)
  if (known === undefined) fold.messages.push(fresh)
  return known ?? fresh
}

function callIn (message: Message, toolCallId: string): ToolCall | undefined {
  return message.role === 'assistant' ? message.toolCalls?.find(({ id }) => id === toolCallId) : undefined
}

function findCall (fold: TranscriptFold, toolCallId: string): ToolCall | undefined {
  for (const message of fold.messages) {
    const call = callIn(message, toolCallId)
    if (call !== undefined) return call
  }
  return undefined
}

function opened (fold: TranscriptFold, kind: string, id: string, event: AgUiEvent): void {
  fold.open[`${kind}\n${id}`] = event
}

function closed (fold: TranscriptFold, kind: string, id: string): void {
  delete fold.open[`${kind}\n${id}`]
}

function isOpen (fold: TranscriptFold, kind: string, id: string): boolean {
  return Object.hasOwn(fold.open, `${kind}\n${id}`)
}

function mergeMetadata (target: { metadata?: Record<string, unknown> } | undefined, event: { readonly metadata?: Record<string, unknown> }): void {
  if (target !== undefined && event.metadata !== undefined) target.metadata = { ...target.metadata, ...event.metadata }
}

function tag (event: { readonly subagentRunId?: string }): { subagentRunId?: string } {
  return event.subagentRunId === undefined ? {} : { subagentRunId: event.subagentRunId }
}
