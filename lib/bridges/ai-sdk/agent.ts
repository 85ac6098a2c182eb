import type { Agent } from '../../agent/index.ts'
import { AgentRun } from './agent-run.ts'
import { type AiSdkAgentOptions, resolveOptions } from './options.ts'
import { type OwnTools, readTools } from './tools.ts'

/**
 * Makes an agent of a model of the AI SDK (`ai` 6): it answers, calls tools, waits for approvals and goes on after them
 * (agent-events 10.1). The model is called by `streamText`, one step at a time; tools are run here, after the deny rules were asked. All a
 * run needs is in its input, so that a paused one continues in another process.
 *
 * @throws AGT_ERR_OPTION_INVALID
 */
export function aiSdkAgent (options: AiSdkAgentOptions): Agent {
  const resolved = resolveOptions(options)
  let tools: Promise<OwnTools> | undefined
  return {
    name: resolved.name,
    ...resolved.description !== undefined && { description: resolved.description },
    capabilities: { resume: true, clientTools: true, denyRules: true, inputMedia: resolved.inputMedia },
    async * stream (input, context) {
      tools ??= readTools(resolved.tools)
      yield * new AgentRun(resolved, await tools, input, context).stream()
    }
  }
}
