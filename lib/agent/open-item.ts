import type { AgentEvent, AgentEventInit, AgentEventType } from './events.ts'
import { wellFormed } from './json.ts'
import type { MessagePart } from './message-builder.ts'
import type { Repair, RepairReason } from './repair.ts'
import { isTimestamp, newId } from './stamp.ts'

/** Takes each event at once, in order. */
export type EmitEvent = (event: AgentEvent) => void

/** What can be open. */
export type OpenKind = 'text' | 'thinking' | 'data' | 'call' | 'result' | 'model'

/** The delta type of each kind; a model call has none. */
export type DeltaType = 'TEXT_BLOCK_DELTA' | 'THINKING_BLOCK_DELTA' | 'DATA_BLOCK_DELTA' | 'TOOL_CALL_DELTA' | 'TOOL_RESULT_TEXT_DELTA'

/** A block, call, result or model call between its start and its end. */
export interface OpenItem {
  readonly kind: OpenKind
  readonly deltaType: DeltaType | ''
  readonly source: string | undefined
  /** As told to adapters. */
  readonly replyId: string
  /** Block or tool call id, as told to adapters. */
  readonly id: string
  /** Tool name. */
  readonly name: string
  /** Block id as the agent names it. */
  readonly rawId: string | undefined
  /** Key in its track. */
  readonly key: string
  /** First half of a surrogate pair, waiting for the second. */
  held: string
  /** No delta but white space so far. */
  isBlank: boolean
  /** Its piece of the root's message. */
  readonly part: MessagePart | undefined
}

/** Members of an event that the stamp reads. */
export interface StampFields {
  readonly id?: unknown
  readonly createdAt?: unknown
}

/** Of an event that brings neither, as most do not. */
export const UNSTAMPED: StampFields = {}

/** What the tracks of one source need of their channel. */
export interface Outlet {
  readonly source: string | undefined
  /** Open items, the innermost last. */
  readonly open: OpenItem[]
  /** Stamps and emits; starts the source first if need be. */
  send (event: AgentEventInit): void
  sendDelta (item: OpenItem, text: string, init: StampFields & { readonly metadata?: unknown }): void
  repair (action: Repair['action'], reason: RepairReason, type: AgentEventType, key?: string): void
}

/** Takes an item off the stack, which is mostly its top. */
export function remove (open: OpenItem[], item: OpenItem): void {
  open.splice(open.lastIndexOf(item), 1)
}

/**
 * The part of `held + delta` that may be told now; a high surrogate at its end is held for the next delta, any other lone
 * half becomes U+FFFD.
 */
export function takeText (item: OpenItem, delta: string): string {
  let text = item.held === '' ? delta : item.held + delta
  item.held = ''
  const last = text.charCodeAt(text.length - 1)
  if (last >= 0xd800 && last <= 0xdbff) {
    item.held = text.slice(-1)
    text = text.slice(0, -1)
  }
  return wellFormed(text)
}

/** The delta event of an item. One literal a shape: this is built for each token. */
export function deltaEvent (item: OpenItem, delta: string, init: StampFields, now: () => string): AgentEvent {
  const { source, replyId } = item
  const id = eventId(init.id)
  const createdAt = eventTime(init.createdAt, now)
  const isTool = item.kind === 'call' || item.kind === 'result'
  // The type stands in the item as one of those that have a delta, each with the members of its shape.
  const type = item.deltaType as DeltaType
  if (isTool) {
    return (source === undefined
      ? { type, id, createdAt, replyId, toolCallId: item.id, toolCallName: item.name, delta }
      : { type, id, createdAt, source, replyId, toolCallId: item.id, toolCallName: item.name, delta }) as AgentEvent
  }
  return (source === undefined
    ? { type, id, createdAt, replyId, blockId: item.id, delta }
    : { type, id, createdAt, source, replyId, blockId: item.id, delta }) as AgentEvent
}

/** The id that an agent gave, or a fresh one. */
export function eventId (id: unknown): string {
  return typeof id === 'string' && id !== '' ? id : newId()
}

/** The time that an agent gave, or the present. */
export function eventTime (createdAt: unknown, now: () => string): string {
  return isTimestamp(createdAt) ? createdAt : now()
}
