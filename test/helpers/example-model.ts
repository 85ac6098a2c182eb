// A scripted language model that behaves as the example's own agents do, so that one test proves both: it sees nothing but prompt and
// tools, as any model, and answers in the words of the agent whose tools it is offered.
import { type LanguageModelV3CallOptions, type LanguageModelV3Message, type LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { MockLanguageModelV3 } from 'ai/test'
import { type Usage } from 'fastify-agents/agent'
import { type AiSdkModel } from 'fastify-agents/bridges/ai-sdk'
import { findExpressions } from '../../examples/agents/arithmetic.ts'
import * as calculator from '../../examples/agents/calculator.ts'
import * as files from '../../examples/agents/file-keeper.ts'
import { PICK_COLOUR, TOUR } from '../../examples/agents/guide.ts'
import { wordUsage } from '../../examples/agents/word-usage.ts'

/** Who runs the example's agents: they themselves, or the bridge with a scripted model. */
export const implementations: readonly { readonly name: string, readonly model: () => AiSdkModel | undefined }[] = [
  { name: 'own agents', model: () => undefined },
  { name: 'AI SDK bridge', model: exampleModel }
]

interface Result { readonly id: string, readonly name: string, readonly input: Record<string, unknown>, readonly state: 'success' | 'error' | 'denied', readonly text: string }

interface Reply { readonly thought?: string, readonly text?: string, readonly calls?: readonly { readonly id: string, readonly name: string, readonly input: unknown }[] }

let ids = 0

/** Makes the model; words come as quickly as they are read. */
export function exampleModel (): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    modelId: 'example',
    doStream: async (options) => {
      const reply = replyTo(options)
      const question = textOf(options.prompt.findLast(({ role }) => role === 'user'))
      const chunks = say(reply, wordUsage(question, writtenIn(reply)))
      return {
        stream: new ReadableStream<LanguageModelV3StreamPart>({
          pull: (controller) => {
            const { done, value } = chunks.next()
            if (done === true) controller.close()
            else controller.enqueue(value)
          }
        }, { highWaterMark: 0 })
      }
    }
  })
}

function replyTo ({ prompt, tools = [] }: LanguageModelV3CallOptions): Reply {
  const names = new Set(tools.map(({ name }) => name))
  const question = textOf(prompt.findLast(({ role }) => role === 'user'))
  const results = resultsOf(prompt)
  if (names.has('calculate')) {
    if (results.length > 0) return { text: `${results.map(({ input, state, text }) => calculator.tellResult(String(input['expression']), state, text)).join(', and ')}.` }
    const sums = findExpressions(question)
    if (sums.length === 0) return { text: calculator.HELP }
    return {
      thought: `There ${sums.length === 1 ? 'is one sum' : `are ${sums.length} sums`} in this question.`,
      calls: sums.map((expression) => ({ id: `call-${++ids}`, name: 'calculate', input: { expression } }))
    }
  }
  if (names.has('write_file')) {
    if (results.length > 0) return { text: results.map(({ name, state, text }) => files.tellResult(name, state, text)).join('\n') }
    const calls = files.commandsOf(question)
    return calls.length === 0 ? { text: files.HELP } : { calls: calls.map(({ id, name, input }) => ({ id, name, input })) }
  }
  const [picked] = results
  if (picked !== undefined) return { thought: 'The page has answered.', text: picked.state === 'success' ? `The page is ${picked.text} now.` : `The page stays as it is: ${picked.text}` }
  if (!/\b(paint|colou?r)/i.test(question)) return { thought: 'The page asks for a tour.', text: TOUR }
  if (!names.has(PICK_COLOUR)) return { text: 'This page offers me no tool to paint it.' }
  return {
    thought: 'Only the page can paint itself. It has a tool for that: I call it and wait.',
    text: 'Choose a colour:',
    calls: [{ id: `call-${++ids}`, name: PICK_COLOUR, input: { question: 'Which colour shall this page have?' } }]
  }
}

/** What counts as said: the same as the own agents count. */
function writtenIn ({ thought, text, calls = [] }: Reply): string {
  const sums = calls.flatMap(({ name, input }) => name === 'calculate' ? [String((input as { expression: unknown }).expression)] : [])
  if (sums.length > 0) return sums.join(' ')
  return calls.length > 0 ? JSON.stringify(calls) : [thought, text].filter((said) => said !== undefined).join(' ')
}

function * say ({ thought, text, calls = [] }: Reply, { inputTokens, outputTokens }: Usage): Generator<LanguageModelV3StreamPart, void, undefined> {
  if (thought !== undefined) {
    yield { type: 'reasoning-start', id: 'r0' }
    for (const delta of words(thought)) yield { type: 'reasoning-delta', id: 'r0', delta }
    yield { type: 'reasoning-end', id: 'r0' }
  }
  if (text !== undefined) {
    yield { type: 'text-start', id: 't0' }
    for (const delta of words(text)) yield { type: 'text-delta', id: 't0', delta }
    yield { type: 'text-end', id: 't0' }
  }
  for (const { id, name, input } of calls) {
    const args = JSON.stringify(input)
    yield { type: 'tool-input-start', id, toolName: name }
    yield { type: 'tool-input-delta', id, delta: args.slice(0, 10) }
    yield { type: 'tool-input-delta', id, delta: args.slice(10) }
    yield { type: 'tool-input-end', id }
    yield { type: 'tool-call', toolCallId: id, toolName: name, input: args }
  }
  yield {
    type: 'finish',
    finishReason: { unified: calls.length > 0 ? 'tool-calls' : 'stop', raw: undefined },
    usage: {
      inputTokens: { total: inputTokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: outputTokens, text: undefined, reasoning: undefined }
    }
  }
}

function words (text: string): readonly string[] {
  return text.match(/\s*\S+\s*/g) ?? []
}

function textOf (message: LanguageModelV3Message | undefined): string {
  return message?.role === 'user' ? message.content.flatMap((part) => part.type === 'text' ? [part.text] : []).join('\n') : ''
}

/** What the tools gave since the user spoke. */
function resultsOf (prompt: LanguageModelV3CallOptions['prompt']): Result[] {
  const inputs = new Map<string, Record<string, unknown>>()
  return prompt.slice(prompt.findLastIndex(({ role }) => role === 'user') + 1).flatMap((message): Result[] => {
    if (message.role === 'assistant') {
      for (const part of message.content) if (part.type === 'tool-call') inputs.set(part.toolCallId, part.input as Record<string, unknown>)
    }
    if (message.role !== 'tool') return []
    return message.content.flatMap((part): Result[] => {
      if (part.type !== 'tool-result') return []
      const { toolCallId: id, toolName: name, output } = part
      const result = { id, name, input: inputs.get(id) ?? {} }
      switch (output.type) {
        case 'execution-denied': return [{ ...result, state: 'denied', text: output.reason ?? '' }]
        case 'error-text': return [{ ...result, state: 'error', text: output.value }]
        case 'text': return [{ ...result, state: 'success', text: output.value }]
        default: throw new Error(`The script knows no result of type ${output.type}.`)
      }
    })
  })
}

let chosen: MockLanguageModelV3 | undefined

/** Lets a model run the agents of every example that this process serves from now on; it keeps the requests it got. */
export function runByModel (): MockLanguageModelV3 {
  chosen = exampleModel()
  return chosen
}

/** What runs the agents of examples served in this process: see {@link runByModel}. */
export function chosenModel (): AiSdkModel | undefined {
  return chosen
}
