export { aiSdkAgent } from './agent.ts'
export { type AiSdkAgentOptions, type AiSdkModel, type AiSdkSettings } from './options.ts'
export { toAgentMessages } from './agent-messages.ts'
export { type ModelPrompt, toModelPrompt } from './model-prompt.ts'
