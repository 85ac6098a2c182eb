// An independent reading of AG-UI's order rules (ag-ui 5), for every stream that a test receives.
import { Value } from '@sinclair/typebox/value'
import { conform } from '../../plugins/ag-ui/conform.ts'
import { AgUiEvent } from '../../plugins/ag-ui/event-schemas.ts'
import { type ReceivedFrame } from './sse-client.ts'

/** An event as it came off the wire. */
export type WireEvent = AgUiEvent

/** What is expected of a stream beside legal events. */
export interface Expectation {
  /** Whether the stream begins with a run and ends with its terminal. @default true */
  readonly whole?: boolean
  /** Whether frames carry dense ids `<epoch>.<seq>`; a refusal has none. @default true */
  readonly ids?: boolean
}

const OPENERS: Readonly<Record<string, readonly [kind: string, id: string]>> = {
  TEXT_MESSAGE_START: ['text', 'messageId'],
  TOOL_CALL_START: ['call', 'toolCallId'],
  REASONING_START: ['span', 'messageId'],
  REASONING_MESSAGE_START: ['reasoning', 'messageId'],
  STEP_STARTED: ['step', 'stepName']
}
const INNER: Readonly<Record<string, readonly [kind: string, id: string]>> = {
  TEXT_MESSAGE_CONTENT: ['text', 'messageId'],
  TOOL_CALL_ARGS: ['call', 'toolCallId'],
  REASONING_MESSAGE_CONTENT: ['reasoning', 'messageId']
}
const CLOSERS: Readonly<Record<string, readonly [kind: string, id: string]>> = {
  TEXT_MESSAGE_END: ['text', 'messageId'],
  TOOL_CALL_END: ['call', 'toolCallId'],
  REASONING_END: ['span', 'messageId'],
  REASONING_MESSAGE_END: ['reasoning', 'messageId'],
  STEP_FINISHED: ['step', 'stepName']
}

/** Reads frames as events and throws where a client could not: bytes, ids, shape or order. */
export function checkFrames (frames: readonly ReceivedFrame[], expectation: Expectation = {}): WireEvent[] {
  const { whole = true, ids = true } = expectation
  const events: WireEvent[] = []
  let last: readonly [epoch: string, seq: number] | undefined
  for (const { raw, id, event, data, retry, comments } of frames) {
    if (raw.includes('\r')) throw new Error(`A frame holds CR: ${JSON.stringify(raw)}`)
    if (data === undefined) {
      if (comments.length > 0 || retry !== undefined) continue
      throw new Error(`A frame says nothing: ${JSON.stringify(raw)}`)
    }
    if (event !== undefined) throw new Error(`A frame has an event name: ${raw}`)
    if (data.includes('\n')) throw new Error(`A frame has several data lines: ${raw}`)
    if (ids) {
      const [epoch, seq] = splitId(id, raw)
      if (last !== undefined && (last[0] !== epoch || last[1] + 1 !== seq)) throw new Error(`Ids are not dense: ${last.join('.')} then ${String(id)}`)
      last = [epoch, seq]
    } else if (id !== undefined) throw new Error(`A frame has an id: ${raw}`)
    events.push(checkShape(JSON.parse(data)))
  }
  if (whole) checkOrder(events)
  return events
}

function splitId (id: string | undefined, raw: string): [string, number] {
  const [, epoch, seq] = /^([\w-]+)\.(\d+)$/.exec(id ?? '') ?? []
  if (epoch === undefined || seq === undefined) throw new Error(`A frame has no usable id: ${raw}`)
  return [epoch, Number(seq)]
}

/** Throws unless the value is an event of AG-UI 1.0 with nothing added and nothing null. */
export function checkShape (event: unknown): WireEvent {
  const [problem] = Value.Errors(AgUiEvent, event)
  if (problem !== undefined) throw new Error(`${JSON.stringify(event)}: ${problem.path} ${problem.message}`)
  const { unknown } = conform(AgUiEvent, event, 100)
  if (unknown.length > 0) throw new Error(`${JSON.stringify(event)}: unknown ${unknown.join()}`)
  return event as WireEvent // checked above
}

/** Throws unless the events are one whole run, by the rules of the strictest client and of the drafts. */
export function checkOrder (events: readonly WireEvent[]): void {
  const open = new Set<string>()
  const results = new Set<string>()
  const [first] = events
  const terminal = events.at(-1)
  if (first?.type !== 'RUN_STARTED') throw new Error(`The first event is ${String(first?.type)}.`)
  if (terminal?.type !== 'RUN_FINISHED' && terminal?.type !== 'RUN_ERROR') throw new Error(`The last event is ${String(terminal?.type)}.`)
  if (terminal.type === 'RUN_FINISHED' && (terminal.threadId !== first.threadId || terminal.runId !== first.runId)) throw new Error('The boundaries name different runs.')
  events.forEach((event, index) => {
    const { type } = event
    const member = event as unknown as Record<string, string>
    const fail = (why: string): never => { throw new Error(`Event ${index}, ${JSON.stringify(event)}: ${why}`) }
    if (index > 0 && type === 'RUN_STARTED') fail('a second start')
    if (index < events.length - 1 && (type === 'RUN_FINISHED' || type === 'RUN_ERROR')) fail('something follows the terminal')
    const opener = OPENERS[type]
    if (opener !== undefined) {
      const key = opener[0] + ' ' + member[opener[1]]
      if (open.has(key)) fail('it is open already')
      open.add(key)
    }
    const inner = INNER[type]
    if (inner !== undefined && !open.has(inner[0] + ' ' + member[inner[1]])) fail('it is not open')
    const closer = CLOSERS[type]
    if (closer !== undefined && !open.delete(closer[0] + ' ' + member[closer[1]])) fail('it is not open')
    if (event.type === 'TOOL_CALL_RESULT') {
      if (results.has(event.messageId)) fail('a second message of that id')
      results.add(event.messageId)
    }
  })
  // A client tolerates open blocks before RUN_ERROR; this server closes them there too (ag-ui 9.6).
  if (open.size > 0) throw new Error(`Open at the end: ${[...open].join()}`)
}

/** Event types in order: what most tests compare. */
export function typesOf (events: readonly WireEvent[]): string[] {
  return events.map(({ type }) => type)
}
