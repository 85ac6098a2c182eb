import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { ContentBlock } from './blocks.ts'
import { isObject, type JsonObject, toJson } from './json.ts'
import { Msg } from './message.ts'
import { newId } from './stamp.ts'

type Fields = Record<string, unknown>

const roles: ReadonlySet<unknown> = new Set(['USER', 'ASSISTANT', 'SYSTEM', 'TOOL'])

/**
 * Reads a message from plain JSON, tolerantly: see {@link decodeEvent}. A missing id is made, a text counts as its content,
 * an unknown role as `ASSISTANT`; blocks that are none are dropped. Undefined when it is no object.
 */
export function decodeMessage (value: unknown): Msg | undefined {
  if (!isObject(value)) return undefined
  const fields = withoutNulls({ ...value })
  const role = typeof fields.role === 'string' ? fields.role.toUpperCase() : undefined
  const message = {
    ...fields,
    id: typeof fields.id === 'string' && fields.id !== '' ? fields.id : newId(),
    role: roles.has(role) ? role : 'ASSISTANT',
    content: typeof fields.content === 'string' ? [{ type: 'text', text: fields.content }] : decodeBlocks(fields.content)
  }
  if (isObject(fields.usage)) withoutNulls(fields.usage)
  dropOptional(message)
  // Every required member was set above, every optional one checked.
  return message as Msg
}

/** Reads content blocks from plain JSON; what is none is dropped. */
export function decodeBlocks (value: unknown): ContentBlock[] {
  return Array.isArray(value) ? value.flatMap(decodeBlock) : []
}

/** Parses the arguments of a tool call; blank text and anything but an object give an empty object. */
export function parseArguments (text: string): JsonObject {
  try {
    const value = toJson(JSON.parse(text))
    if (isObject(value)) return value as JsonObject
  } catch {
    // A model's arguments may be cut off or wrong: the raw text stands beside the empty input.
  }
  return {}
}

/** Removes members that are null: the reference writes them where it means nothing. */
export function withoutNulls (fields: Fields): Fields {
  for (const key in fields) {
    if (fields[key] === null) delete fields[key]
  }
  return fields
}

function decodeBlock (value: unknown): ContentBlock[] {
  if (!isObject(value)) return []
  const block = withoutNulls({ ...value })
  if (isObject(block.source)) block.source = withoutNulls({ ...block.source })
  if (block.type === 'tool_use') decodeToolUse(block)
  if (block.type === 'tool_result') decodeToolResult(block)
  return isBlock(block) ? [block] : []
}

function decodeToolUse (block: Fields): void {
  if (typeof block.input === 'string') block.content ??= block.input
  if (!isObject(block.input)) block.input = parseArguments(typeof block.content === 'string' ? block.content : '')
  if (typeof block.state === 'string') block.state = block.state.toLowerCase()
  dropUnless(block, 'content', typeof block.content === 'string')
  dropUnless(block, 'metadata', isObject(block.metadata))
}

function decodeToolResult (block: Fields): void {
  block.output = typeof block.output === 'string' ? [{ type: 'text', text: block.output }] : decodeBlocks(block.output)
  block.state = typeof block.state === 'string' ? block.state.toLowerCase() : 'success'
  dropUnless(block, 'metadata', isObject(block.metadata))
}

const blockCheck: TypeCheck<typeof ContentBlock> = TypeCompiler.Compile(ContentBlock)

/** True for a content block of a known type with all its members. */
export function isBlock (value: unknown): value is ContentBlock {
  return blockCheck.Check(value)
}

function dropOptional (message: Fields): void {
  for (const key of ['name', 'timestamp'] as const) dropUnless(message, key, typeof message[key] === 'string')
  dropUnless(message, 'metadata', isObject(message.metadata))
  dropUnless(message, 'usage', usageCheck.Check(message.usage))
}

function dropUnless (fields: Fields, key: string, isRight: boolean): void {
  if (!isRight) delete fields[key]
}

const usageCheck = TypeCompiler.Compile(Msg.properties.usage)
