// An agent that answers in streams and computes with tools. It stands in for a model: the same events, no key.
import { randomUUID } from 'node:crypto'
import { runTool, textOf, type Agent, type AgentInput, type ToolResultState } from 'fastify-agents/agent'
import { findExpressions } from './arithmetic.ts'
import { calculatorTools } from './calculator-tools.ts'
import { say, type SayOptions } from './speech.ts'
import { wordUsage } from './word-usage.ts'

/** What it says when there is nothing to compute. */
export const HELP = 'I compute sums. Ask me for "6*7", "2^10 and 3*(4+5)", or anything with + - * / % ^ in it.'

export interface CalculatorOptions {
  /** Milliseconds between two words. @default 20 */
  readonly wordMs?: number
}

/** Computes every sum it finds in the newest question, all of them in one batch of tool calls. */
export function calculator (options: CalculatorOptions = {}): Agent {
  const wordMs = options.wordMs ?? 20
  const tools = new Map(calculatorTools().map((tool) => [tool.name, tool]))
  return {
    name: 'calculator',
    description: 'Computes sums: + - * / % ^ and parentheses.',
    capabilities: { restartable: true, denyRules: true },

    async * stream (input, context) {
      const { signal } = context
      const model = randomUUID()
      const speech: SayOptions = { replyId: model, wordMs, signal }
      const question = newestQuestion(input)
      const expressions = findExpressions(question)

      yield { type: 'MODEL_CALL_START', replyId: model, model: 'arithmetic' }
      if (expressions.length === 0) {
        yield * say(HELP, speech)
        yield { type: 'MODEL_CALL_END', replyId: model, usage: wordUsage(question, HELP), model: 'arithmetic' }
        return
      }

      yield * say(`There ${expressions.length === 1 ? 'is one sum' : `are ${expressions.length} sums`} in this question.`, { ...speech, blockId: 'thinking', isThought: true })
      const calls = expressions.map((expression) => ({ toolCallId: `call-${randomUUID()}`, toolCallName: 'calculate', expression }))
      for (const { expression, ...call } of calls) {
        yield { type: 'TOOL_CALL_START', replyId: model, ...call, executor: 'agent' }
        yield { type: 'TOOL_CALL_DELTA', replyId: model, ...call, delta: JSON.stringify({ expression }) }
        yield { type: 'TOOL_CALL_END', replyId: model, ...call }
      }
      yield { type: 'MODEL_CALL_END', replyId: model, usage: wordUsage(question, expressions.join(' ')), model: 'arithmetic' }

      const batch = randomUUID()
      const answers: string[] = []
      for (const { expression, toolCallId: id, toolCallName: name } of calls) {
        signal.throwIfAborted()
        const outcome = yield * runTool(tools.get(name), { id, name, input: { expression } }, context, { replyId: batch })
        if (outcome.kind === 'done') answers.push(tellResult(expression, outcome.state, textOf(outcome.output)))
      }

      const answer = randomUUID()
      yield { type: 'MODEL_CALL_START', replyId: answer, model: 'arithmetic' }
      const text = `${answers.join(', and ')}.`
      yield * say(text, { ...speech, replyId: answer })
      yield { type: 'MODEL_CALL_END', replyId: answer, usage: wordUsage(question, text), model: 'arithmetic' }
    }
  }
}

/** One sum and what came of it, in words. */
export function tellResult (expression: string, state: ToolResultState, text: string): string {
  return state === 'success' ? `${expression} = ${text}` : `${expression}: ${text.replace(/^Error: /, '')}`
}

function newestQuestion (input: AgentInput): string {
  const message = input.messages.findLast(({ role }) => role === 'USER')
  return message === undefined ? '' : textOf(message)
}
