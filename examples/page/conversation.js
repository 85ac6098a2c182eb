// What the page knows: one conversation as plain JSON, and how each AG-UI event changes it. Nothing here touches the page itself.

const STORED_AS = 'conversation'

/** An id nobody else has. (crypto.randomUUID exists on https and localhost alone, and this page may be looked at from a phone.) */
export function newId () {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** A conversation in which nothing has been said. */
export function newConversation (agentId) {
  return {
    agentId,
    threadId: newId(),
    /** The transcript as AG-UI messages. It is sent with every run: the server keeps none. */
    messages: [],
    /** The run being followed: `{ threadId, runId, agentId, request?, lastEventId? }`, undefined when there is none. */
    run: undefined,
    /** Ids of messages that are being written. */
    open: [],
    /** Questions that must be answered before the conversation can go on. */
    interrupts: [],
    /** Ids of the calls that this page must answer. */
    pageCalls: [],
    /** What the user should know about the end of the last run: `{ tone: 'info' | 'error', text, canRetry?, isRefused? }`. */
    note: undefined,
    /** Tokens by run: a run that is told again is not counted again. */
    usage: {}
  }
}

/** Takes one event of the run being followed, and the id to rejoin it with. Everything changes in one step, so that what is saved always fits together. */
export function applyEvent (conversation, event, id) {
  const { run } = conversation
  // Only a run that exists has ids: what comes without any was refused, or is not known.
  apply(conversation, event, run, run.lastEventId === undefined && id === undefined)
  // Only what has been applied may be skipped when the run is rejoined.
  if (id !== undefined) run.lastEventId = id
  // The server has the request: from here on the run is rejoined, never asked for again.
  delete run.request
}

function apply (conversation, event, run, hasNoIds) {
  const { messages } = conversation
  switch (event.type) {
    case 'RUN_STARTED':
      // A run that is told from its beginning repeats what it was asked with; what came of it follows again.
      if (event.input !== undefined) conversation.messages = event.input.messages
      // Somebody who rejoins and hears of a start without any of this is talking to a server that does not know the thread.
      run.isUnknown = run.request === undefined && event.input === undefined
      run.runId = event.runId
      conversation.open = []
      return
    case 'MESSAGES_SNAPSHOT':
      conversation.messages = event.messages
      run.isUnknown = false
      return

    case 'TEXT_MESSAGE_START':
      findOrAdd(messages, { id: event.messageId, role: event.role ?? 'assistant', content: '' })
      conversation.open.push(event.messageId)
      return
    case 'REASONING_MESSAGE_START':
      findOrAdd(messages, { id: event.messageId, role: 'reasoning', content: '' })
      conversation.open.push(event.messageId)
      return
    case 'TEXT_MESSAGE_CONTENT':
    case 'REASONING_MESSAGE_CONTENT': {
      const message = messages.find(({ id }) => id === event.messageId)
      message.content = (message.content ?? '') + event.delta
      return
    }
    case 'TEXT_MESSAGE_END':
    case 'REASONING_MESSAGE_END':
      conversation.open = conversation.open.filter((id) => id !== event.messageId)
      return

    case 'TOOL_CALL_START': {
      if (callOf(messages, event.toolCallId) !== undefined) return
      const parent = findOrAdd(messages, { id: event.parentMessageId ?? event.toolCallId, role: 'assistant' });
      (parent.toolCalls ??= []).push({ id: event.toolCallId, type: 'function', function: { name: event.toolCallName, arguments: '' } })
      return
    }
    case 'TOOL_CALL_ARGS':
      callOf(messages, event.toolCallId).function.arguments += event.delta
      return
    case 'TOOL_CALL_RESULT': {
      const { messageId, toolCallId, content, metadata } = event
      addResult(messages, { id: messageId, role: 'tool', toolCallId, content, ...metadata !== undefined && { metadata } })
      return
    }

    case 'REASONING_ENCRYPTED_VALUE': {
      // A model's own note: it wants it back with the next run.
      const target = event.subtype === 'tool-call' ? callOf(messages, event.entityId) : messages.find(({ id }) => id === event.entityId)
      if (target !== undefined) target.encryptedValue = event.encryptedValue
      return
    }

    case 'RUN_FINISHED':
    case 'RUN_ERROR':
      conversation.run = undefined
      conversation.open = []
      if (event.usage !== undefined) conversation.usage[run.runId] = sum(event.usage)
      return event.type === 'RUN_FINISHED' ? finish(conversation, event, run) : fail(conversation, event, hasNoIds)

    // Steps, state, activities, subagents, CUSTOM, RAW, and what protocols to come will bring: this page shows none of it.
  }
}

function finish (conversation, { outcome }, run) {
  conversation.interrupts = outcome?.type === 'interrupt' ? outcome.interrupts : []
  conversation.pageCalls = outcome?.type === 'success' ? outcome.pendingToolCallIds ?? [] : []
  if (outcome?.type === 'cancelled') conversation.note = { tone: 'info', text: 'Stopped.' }
  // What went wrong before that is said already.
  if (run.isUnknown && conversation.note?.tone !== 'error') {
    conversation.note = { tone: 'error', text: 'The server was restarted and does not know this run any more. What had arrived is kept.', canRetry: true }
  }
}

function fail (conversation, { message }, isRefused) {
  // A run that failed has taken its answers with it; the questions of one that was refused are still open.
  if (!isRefused) conversation.interrupts = []
  conversation.note = { tone: 'error', text: message, canRetry: true, isRefused }
}

function addResult (messages, result) {
  if (messages.some(({ id }) => id === result.id)) return
  // Results stand right behind the message that asked for them, as models want them.
  let index = messages.findIndex(({ toolCalls }) => toolCalls?.some(({ id }) => id === result.toolCallId)) + 1
  if (index === 0) index = messages.length
  while (messages[index]?.role === 'tool') index++
  messages.splice(index, 0, result)
}

function findOrAdd (messages, fresh) {
  const known = messages.find(({ id }) => id === fresh.id)
  if (known === undefined) messages.push(fresh)
  return known ?? fresh
}

function callOf (messages, toolCallId) {
  for (const { toolCalls = [] } of messages) {
    const call = toolCalls.find(({ id }) => id === toolCallId)
    if (call !== undefined) return call
  }
}

function sum (usage) {
  return {
    input: usage.reduce((total, { inputTokens = 0 }) => total + inputTokens, 0),
    output: usage.reduce((total, { outputTokens = 0 }) => total + outputTokens, 0)
  }
}

/** Keeps a conversation for this tab. The transcript and the id to rejoin with are one value: whenever it was saved, they belong together. */
export function save (conversation) {
  try {
    sessionStorage.setItem(STORED_AS, JSON.stringify(conversation))
  } catch {
    // Full, or forbidden. Then a reload finds an older state, and the server tells the rest from there.
  }
}

/** The conversation of this tab, where it has one. */
export function load () {
  try {
    return JSON.parse(sessionStorage.getItem(STORED_AS)) ?? undefined
  } catch {
    return undefined
  }
}
