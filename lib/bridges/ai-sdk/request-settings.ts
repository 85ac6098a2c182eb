import type { ToolSet } from 'ai'
import type { AgentInput } from '../../agent/index.ts'
import type { ModelRequest } from './model-call.ts'
import type { AiSdkSettings } from './options.ts'

/** The agent's settings with a request's hints laid over them; a request can lower the agent's limit of tokens, never raise it. */
export function requestSettings (settings: AiSdkSettings, hints: AgentInput['options'] = {}): AiSdkSettings {
  const { temperature, topP, maxOutputTokens, stop, seed } = hints
  const limits = [settings.maxOutputTokens, maxOutputTokens].filter((limit) => limit !== undefined)
  return {
    ...settings,
    ...temperature !== undefined && { temperature },
    ...topP !== undefined && { topP },
    ...stop !== undefined && { stopSequences: stop },
    ...seed !== undefined && { seed },
    ...limits.length > 0 && { maxOutputTokens: Math.min(...limits) }
  }
}

/** Which tool a request wants to be called; a name that no tool has counts as none. */
export function toolChoiceOf (tools: ToolSet, choice: NonNullable<AgentInput['tools']>['choice']): Pick<ModelRequest, 'toolChoice'> {
  if (choice === undefined || Object.keys(tools).length === 0) return {}
  if (typeof choice === 'string') return { toolChoice: choice }
  return Object.hasOwn(tools, choice.name) ? { toolChoice: { type: 'tool', toolName: choice.name } } : {}
}
