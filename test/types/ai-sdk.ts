// What must and must not compile (checked by tsc, never run).
import { Type } from '@sinclair/typebox'
import { gateway, jsonSchema, tool } from 'ai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { type Agent, defineTool } from 'fastify-agents/agent'
import { aiSdkAgent } from 'fastify-agents/bridges/ai-sdk'

const model = createOpenAICompatible({ name: 'x', baseURL: 'http://127.0.0.1' })('small')

/** A provider's model, the gateway's, tools of either kind. */
export const agents: readonly Agent[] = [
  aiSdkAgent({ model }),
  aiSdkAgent({ model: gateway('openai/gpt-5-mini'), system: 'Be brief.', settings: { temperature: 0, providerOptions: { openai: { reasoningEffort: 'low' } } } }),
  aiSdkAgent({ model, tools: [defineTool({ name: 'add', parameters: Type.Object({ a: Type.Number() }), execute: ({ a }) => a + 1 })] }),
  aiSdkAgent({ model, tools: { add: tool({ inputSchema: jsonSchema<{ a: number }>({ type: 'object' }), needsApproval: ({ a }) => a > 1, execute: ({ a }) => a + 1 }) } })
]

// @ts-expect-error: an id is no model; gateway(id) makes one.
aiSdkAgent({ model: 'openai/gpt-5-mini' })
// @ts-expect-error: how often the model is called is the agent's to decide, not streamText's.
aiSdkAgent({ model, settings: { stopWhen: [] } })
// @ts-expect-error: there is no agent without a model.
aiSdkAgent({ system: 'Be brief.' })
