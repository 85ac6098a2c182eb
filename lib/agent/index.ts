export { accumulate, type Events, pendingOf, usageOf } from './accumulate.ts'
export { type Agent, type AgentCapabilities } from './agent.ts'
export { asTool, type AsToolOptions } from './as-tool.ts'
export {
  AudioBlock, Base64Source, ContentBlock, DataBlock, HintBlock, ImageBlock, MediaSource, TextBlock, ThinkingBlock,
  ToolCallState, ToolResultBlock, ToolResultState, ToolUseBlock, UrlSource, VideoBlock
} from './blocks.ts'
export {
  type ContextKey, contextKey, createRuntimeContext, deriveContext, type ProtocolName, type RuntimeContext, type RuntimeContextInit
} from './context.ts'
export { ConfirmDecision, Decision, InputDecision, ResultDecision } from './decision.ts'
export { decodeEvent, encodeEvent } from './decode-event.ts'
export { decodeBlocks, decodeMessage, isBlock, parseArguments } from './decode-message.ts'
export { AgentError, type AgentErrorInit, toAgentError } from './errors.ts'
export {
  AgentEvent, type AgentEventInit, type AgentEventInitOf, type AgentEventOf, agentEventSchemas, type AgentEventType,
  ConfirmResult, InputRequest, isAgentEventType
} from './events.ts'
export { forward, withSource } from './forward.ts'
export { GenerateReason, isGenerateReason } from './generate-reason.ts'
export { AgentInput, ModelOptions, OutputRequest } from './input.ts'
export { isObject, JsonObject, JsonValue, toJson } from './json.ts'
export { type MergedTools, mergeTools, parseToolMergeMode, type SkippedTool } from './merge-tools.ts'
export { Msg, MsgMetadata, Role, textOf } from './message.ts'
export { Normaliser, type NormaliserOptions, type StreamEnd } from './normaliser.ts'
export { type Pending, pendingId } from './pending.ts'
export { PermissionBehavior, PermissionRule } from './permission-rule.ts'
export { createPermissions, deniedByRules, type PermissionQuery, type PermissionResult, type Permissions } from './permissions.ts'
export { type Repair, type RepairReason } from './repair.ts'
export {
  deniedByUser, type DecisionProblem, editCall, type ResolvedDecisions, resolveDecisions, type ResolveDecisionsOptions
} from './resolve-decisions.ts'
export { runAgent, type RunAgentOptions } from './run-agent.ts'
export { type InterruptSource, RunInterrupted } from './run-interrupted.ts'
export { runTool, type RunToolOptions, type ToolCall, type ToolOutcome } from './run-tool.ts'
export { isTimestamp, newId, timestamp } from './stamp.ts'
export { type Reply, textAgent, type TextAgentOptions } from './text-agent.ts'
export { defineTool, type Tool, type ToolContext, type ToolInit, type ToolInput, type ToolOutput, ToolSuspended, type ToolYield } from './tool.ts'
export { ToolChoice, ToolDefinition, type ToolMergeMode, ToolMergeModeName } from './tool-definition.ts'
export { Usage } from './usage.ts'
export { validateJson } from './validate-json.ts'
