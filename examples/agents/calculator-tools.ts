import { Type } from '@sinclair/typebox'
import { defineTool, type Tool } from 'fastify-agents/agent'
import { evaluate } from './arithmetic.ts'

/** The calculator's tools, whoever calls them: its own code, or a model. */
export function calculatorTools (): readonly Tool[] {
  return [
    defineTool({
      name: 'calculate',
      description: 'Computes one sum exactly: + - * / % ^ and parentheses.',
      parameters: Type.Object({ expression: Type.String({ maxLength: 1000, description: 'The sum alone: 2^10*(3+4)' }) }),
      execute: ({ expression }) => String(evaluate(expression))
    })
  ]
}
