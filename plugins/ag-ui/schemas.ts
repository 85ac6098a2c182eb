import { type Static, Type } from '@sinclair/typebox'

/**
 * A value this protocol carries without looking inside (state, payloads, parameters, forwarded props).
 * Nothing in it is ever stripped: a null or an unknown member there is the caller's data.
 */
export const Opaque = Type.Unknown()

/** An object that is open by key: any value under any key, never null itself. */
export const OpenObject = Type.Record(Type.String(), Type.Unknown())
export type OpenObject = Static<typeof OpenObject>

/** An id that must say something: blank ones would share one slot among all callers that forgot theirs. */
const Id = Type.String({ minLength: 1, pattern: '\\S' })

/** Bytes sent inline. */
export const DataSource = Type.Object({ type: Type.Literal('data'), value: Type.String({ description: 'Base64.' }), mimeType: Type.String() })
/** Bytes named by an address; whoever needs them fetches them. */
export const UrlSource = Type.Object({ type: Type.Literal('url'), value: Type.String(), mimeType: Type.Optional(Type.String()) })
/** Bytes that a provider already has, named by the handle it issued (1.0 only). */
export const FileSource = Type.Object({
  type: Type.Literal('file'), value: Type.String(), provider: Type.Optional(Type.String()), mimeType: Type.Optional(Type.String())
})

/** Where the bytes of a media part come from (AG-UI 1.0, "Content parts"). */
export const PartSource = Type.Union([DataSource, UrlSource, FileSource])
export type PartSource = Static<typeof PartSource>

/** A piece of text in a message. */
export const TextPart = Type.Object({ type: Type.Literal('text'), text: Type.String(), id: Type.Optional(Type.String()), metadata: Type.Optional(Opaque) })
export type TextPart = Static<typeof TextPart>

const media = <Kind extends 'image' | 'audio' | 'video' | 'document'>(kind: Kind) => Type.Object({
  type: Type.Literal(kind), source: PartSource, id: Type.Optional(Type.String()), metadata: Type.Optional(Opaque)
})

/** An image in a message. */
export const ImagePart = media('image')
/** A sound in a message. */
export const AudioPart = media('audio')
/** A film in a message. */
export const VideoPart = media('video')
/** A document in a message. */
export const DocumentPart = media('document')

/** One part of a message body: what a person sends, or what a tool returns (section 3.4). */
export const ContentPart = Type.Union([TextPart, ImagePart, AudioPart, VideoPart, DocumentPart])
export type ContentPart = Static<typeof ContentPart>
/** A part with bytes. */
export type MediaPart = Exclude<ContentPart, TextPart>

/** A call an assistant message made; `function.arguments` is JSON text as the model wrote it. */
export const ToolCall = Type.Object({
  id: Id,
  type: Type.Literal('function'),
  function: Type.Object({ name: Type.String(), arguments: Type.String() }),
  encryptedValue: Type.Optional(Type.String()),
  metadata: Type.Optional(OpenObject)
})
export type ToolCall = Static<typeof ToolCall>

const shared = {
  subagentRunId: Type.Optional(Type.String()),
  encryptedValue: Type.Optional(Type.String()),
  metadata: Type.Optional(OpenObject)
}
const named = { ...shared, name: Type.Optional(Type.String()) }
const Body = Type.Union([Type.String(), Type.Array(ContentPart)])

/** Instructions of the application's developer. */
export const DeveloperMessage = Type.Object({ id: Id, role: Type.Literal('developer'), content: Type.String(), ...named })
/** Instructions of the system. */
export const SystemMessage = Type.Object({ id: Id, role: Type.Literal('system'), content: Type.String(), ...named })
/** What the person said. */
export const UserMessage = Type.Object({ id: Id, role: Type.Literal('user'), content: Body, ...named })
/** What the agent said, or the calls it made, or both. */
export const AssistantMessage = Type.Object({
  id: Id, role: Type.Literal('assistant'), content: Type.Optional(Type.String()), toolCalls: Type.Optional(Type.Array(ToolCall)), ...named
})
/** What a tool returned; `error` says that it failed. */
export const ToolMessage = Type.Object({
  id: Id, role: Type.Literal('tool'), toolCallId: Type.String(), content: Body, error: Type.Optional(Type.String()), ...shared
})
/** What the agent thought. */
export const ReasoningMessage = Type.Object({ id: Id, role: Type.Literal('reasoning'), content: Type.String(), ...shared })
/** Progress that a page renders as a widget; it never reaches a model. */
export const ActivityMessage = Type.Object({
  id: Id,
  role: Type.Literal('activity'),
  activityType: Type.String(),
  content: OpenObject,
  subagentRunId: Type.Optional(Type.String()),
  metadata: Type.Optional(OpenObject)
})

/** One message of a conversation, told apart by `role` (section 3.3). */
export const Message = Type.Union([DeveloperMessage, SystemMessage, UserMessage, AssistantMessage, ToolMessage, ReasoningMessage, ActivityMessage])
export type Message = Static<typeof Message>
export type UserMessage = Static<typeof UserMessage>
export type AssistantMessage = Static<typeof AssistantMessage>
export type ToolMessage = Static<typeof ToolMessage>

/** A tool that lives in the page (section 3.2). */
export const Tool = Type.Object({
  name: Type.String(),
  description: Type.String(),
  parameters: Type.Optional(Type.Unknown({ description: 'JSON Schema of the arguments.' })),
  metadata: Type.Optional(OpenObject)
})
export type Tool = Static<typeof Tool>

/** One fact the page tells the agent beside the conversation. */
export const Context = Type.Object({ description: Type.String(), value: Type.String() })
export type Context = Static<typeof Context>

/** The answer to one interrupt of an earlier run. */
export const ResumeEntry = Type.Object({
  interruptId: Id,
  status: Type.Union([Type.Literal('resolved'), Type.Literal('cancelled')]),
  payload: Type.Optional(Opaque),
  metadata: Type.Optional(OpenObject)
})
export type ResumeEntry = Static<typeof ResumeEntry>

/**
 * The request to run an agent (AG-UI 1.0, "RunAgentInput"; section 3.1).
 * `tools` and `context` may be absent on the wire and are always there once parsed; a null `state` counts as absent.
 */
export const RunAgentInput = Type.Object({
  threadId: Id,
  runId: Id,
  protocolVersion: Type.Optional(Type.String()),
  parentRunId: Type.Optional(Type.String()),
  state: Type.Optional(Opaque),
  messages: Type.Array(Message),
  tools: Type.Optional(Type.Array(Tool)),
  context: Type.Optional(Type.Array(Context)),
  forwardedProps: Type.Optional(Opaque),
  resume: Type.Optional(Type.Array(ResumeEntry))
})
/** The request as a client may send it. */
export type RunAgentInput = Static<typeof RunAgentInput>
/** The request after `parseRunInput`: nothing unknown, no nulls outside opaque values, lists always there. */
export type NormalisedInput = RunAgentInput & { readonly tools: Tool[], readonly context: Context[] }

/** What is wrong with one field of a request; the value itself is never repeated. */
export const InputIssue = Type.Object({ path: Type.String(), reason: Type.String() })
export type InputIssue = Static<typeof InputIssue>

/** The JSON body of every answer that is not a stream (section 2.2). */
export const ErrorBody = Type.Object({
  error: Type.Object({ code: Type.String(), message: Type.String(), issues: Type.Optional(Type.Array(InputIssue)) })
})
export type ErrorBody = Static<typeof ErrorBody>
