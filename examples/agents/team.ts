// The example's agents: by themselves, as code that stands in for a model, or run by a model with the same tools.
import { mkdir } from 'node:fs/promises'
import { type Agent } from 'fastify-agents/agent'
import { aiSdkAgent, type AiSdkModel } from 'fastify-agents/bridges/ai-sdk'
import { calculatorTools } from './calculator-tools.ts'
import { calculator } from './calculator.ts'
import { createFileKeeper } from './file-keeper.ts'
import { fileTools } from './file-tools.ts'
import { guide } from './guide.ts'

export interface TeamOptions {
  /** Folder in which the `files` agent works; made if it is missing. */
  readonly folder: string
  /** Milliseconds between two words of an agent that is no model. @default 20 */
  readonly wordMs?: number
  /** Runs all of them. @default none: they answer by themselves */
  readonly model?: AiSdkModel | undefined
}

/** Makes the agents by their names. */
export async function createTeam ({ folder, wordMs = 20, model }: TeamOptions): Promise<Record<string, Agent>> {
  // The guide is the slow one: its answer is there to be watched, reloaded and stopped.
  const team = { guide: guide({ wordMs: wordMs * 2 }), calculator: calculator({ wordMs }), files: await createFileKeeper({ folder, wordMs }) }
  if (model === undefined) return team
  await mkdir(folder, { recursive: true })
  return {
    guide: aiSdkAgent({
      model,
      name: 'guide',
      description: team.guide.description ?? '',
      system: 'You show a visitor around a page that streams your answers: tell them at length what happens when they reload it or press Stop. ' +
        'When they want the page painted, call the tool of the page that picks a colour, then say what came of it.'
    }),
    calculator: aiSdkAgent({
      model,
      name: 'calculator',
      description: team.calculator.description ?? '',
      tools: calculatorTools(),
      system: 'You compute sums. Never compute by yourself: call the tool `calculate` once for each sum, all at once, then say the results in one sentence.'
    }),
    files: aiSdkAgent({
      model,
      name: 'files',
      description: team.files.description ?? '',
      tools: fileTools(folder),
      system: 'You keep files in one folder. Do what you are asked with your tools, then say what came of it. A human approves each change; when one is denied, do not try it again.'
    })
  }
}
