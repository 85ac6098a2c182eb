import { type Static, Type } from '@sinclair/typebox'
import { JsonObject } from './json.ts'

const open = { additionalProperties: true }

/** Where a media block's bytes are: by address. */
export const UrlSource = Type.Object({
  type: Type.Literal('url'), url: Type.String(), mime_type: Type.Optional(Type.String())
}, open)
/** @see {@link UrlSource} */
export type UrlSource = Static<typeof UrlSource>

/** A media block's bytes, in base64. The MIME key differs from {@link UrlSource}'s, as on the wire of AgentScope. */
export const Base64Source = Type.Object({
  type: Type.Literal('base64'), media_type: Type.String(), data: Type.String()
}, open)
/** @see {@link Base64Source} */
export type Base64Source = Static<typeof Base64Source>

/** Source of a media block. */
export const MediaSource = Type.Union([UrlSource, Base64Source])
/** @see {@link MediaSource} */
export type MediaSource = Static<typeof MediaSource>

/** Plain text. */
export const TextBlock = Type.Object({ type: Type.Literal('text'), text: Type.String() }, open)
/** @see {@link TextBlock} */
export type TextBlock = Static<typeof TextBlock>

/** Reasoning; provider signatures stand in `metadata.reasoningDetails`. */
export const ThinkingBlock = Type.Object({
  type: Type.Literal('thinking'), thinking: Type.String(), metadata: Type.Optional(JsonObject)
}, open)
/** @see {@link ThinkingBlock} */
export type ThinkingBlock = Static<typeof ThinkingBlock>

/** An image. */
export const ImageBlock = Type.Object({ type: Type.Literal('image'), source: MediaSource }, open)
/** @see {@link ImageBlock} */
export type ImageBlock = Static<typeof ImageBlock>

/** Sound. */
export const AudioBlock = Type.Object({ type: Type.Literal('audio'), source: MediaSource }, open)
/** @see {@link AudioBlock} */
export type AudioBlock = Static<typeof AudioBlock>

/** A video. */
export const VideoBlock = Type.Object({ type: Type.Literal('video'), source: MediaSource }, open)
/** @see {@link VideoBlock} */
export type VideoBlock = Static<typeof VideoBlock>

/** The generic binary block; documents are data blocks. */
export const DataBlock = Type.Object({
  type: Type.Literal('data'), source: MediaSource, id: Type.Optional(Type.String()), name: Type.Optional(Type.String())
}, open)
/** @see {@link DataBlock} */
export type DataBlock = Static<typeof DataBlock>

/** A note to the model that is not the user's: team messages, results of background work. */
export const HintBlock = Type.Object({
  type: Type.Literal('hint'), id: Type.Optional(Type.String()), hint: Type.String(), source: Type.Optional(Type.String())
}, open)
/** @see {@link HintBlock} */
export type HintBlock = Static<typeof HintBlock>

/** State of a tool call. */
export const ToolCallState = Type.Union([
  Type.Literal('pending'), Type.Literal('asking'), Type.Literal('allowed'), Type.Literal('submitted'), Type.Literal('finished')
])
/** @see {@link ToolCallState} */
export type ToolCallState = Static<typeof ToolCallState>

/** State of a tool result; `running` = suspended, its answer comes with a later run. */
export const ToolResultState = Type.Union([
  Type.Literal('success'), Type.Literal('error'), Type.Literal('interrupted'), Type.Literal('denied'), Type.Literal('running')
])
/** @see {@link ToolResultState} */
export type ToolResultState = Static<typeof ToolResultState>

/** A model's call of a tool. `content` is the raw JSON text of the arguments, `input` what it parses to. */
export const ToolUseBlock = Type.Object({
  type: Type.Literal('tool_use'),
  id: Type.String(),
  name: Type.String(),
  input: JsonObject,
  content: Type.Optional(Type.String()),
  metadata: Type.Optional(JsonObject),
  state: Type.Optional(ToolCallState)
}, open)
/** @see {@link ToolUseBlock} */
export type ToolUseBlock = Static<typeof ToolUseBlock>

const leaves = [TextBlock, ThinkingBlock, ImageBlock, AudioBlock, VideoBlock, DataBlock, HintBlock, ToolUseBlock] as const

// Checked one level deep: a `$ref` to itself would need an id, and ids clash when many routes embed the schema.
const NestedResult = Type.Object({ type: Type.Literal('tool_result'), id: Type.String() }, open)

/** A tool's answer. */
export type ToolResultBlock = {
  type: 'tool_result'
  id: string
  name?: string
  output: ContentBlock[]
  metadata?: JsonObject
  state: ToolResultState
}
/** Schema of {@link ToolResultBlock}. */
export const ToolResultBlock = Type.Unsafe<ToolResultBlock>(Type.Object({
  type: Type.Literal('tool_result'),
  id: Type.String(),
  name: Type.Optional(Type.String()),
  output: Type.Array(Type.Union([...leaves, NestedResult])),
  metadata: Type.Optional(JsonObject),
  state: ToolResultState
}, open))

/** One piece of a message (agent-events 2). */
export type ContentBlock = TextBlock | ThinkingBlock | ImageBlock | AudioBlock | VideoBlock | DataBlock | HintBlock |
  ToolUseBlock | ToolResultBlock
/** Schema of {@link ContentBlock}. */
export const ContentBlock = Type.Unsafe<ContentBlock>(Type.Union([...leaves, ToolResultBlock]))
