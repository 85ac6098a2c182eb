import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { type AiSdkModel } from 'fastify-agents/bridges/ai-sdk'

/**
 * The model that the environment names, on any server that speaks OpenAI's chat protocol; undefined when it names none.
 * @throws Error in one sentence for settings that lead to no model
 */
export function modelFromEnvironment (env: NodeJS.ProcessEnv): AiSdkModel | undefined {
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL, MODEL: model } = env
  if (!apiKey && !baseURL && !model) return undefined
  if (!apiKey && !baseURL) throw new Error('MODEL is set, but neither OPENAI_API_KEY nor OPENAI_BASE_URL: nobody knows where it runs.')
  if (baseURL && !model) throw new Error('OPENAI_BASE_URL is set, but not MODEL: each server has models of its own.')
  const provider = createOpenAICompatible({
    name: 'openai',
    baseURL: baseURL || 'https://api.openai.com/v1',
    // A server of one's own often needs no key.
    ...apiKey ? { apiKey } : {},
    includeUsage: true
  })
  return provider(model || 'gpt-5-mini')
}
