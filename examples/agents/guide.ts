// An agent that shows a page around: it thinks aloud, answers at length, and calls a tool that runs in the page.
import { randomUUID } from 'node:crypto'
import { runTool, textOf, type Agent, type AgentEventInit, type AgentInput, type RuntimeContext, type ToolResultBlock } from 'fastify-agents/agent'
import { say } from './speech.ts'
import { wordUsage } from './word-usage.ts'

export interface GuideOptions {
  /** Milliseconds between two words. @default 20 */
  readonly wordMs?: number
}

/** Name of the tool that a page must offer to be painted: it asks its user for a colour, shows it, and answers with its name. */
export const PICK_COLOUR = 'pick_colour'

/** The tour itself. */
export const TOUR = `You are watching server-sent events. Every few words of this answer are one event with an id of its own, and the server keeps them for a while.

So reload this page now, in the middle of the sentence: it comes back with the id of the last event it has seen, and the server goes on with the next one. Nothing is lost, and nothing is said twice. A train in a tunnel is the same thing: this run belongs to the server, not to your connection, and it waits for you before it gives up.

Press Stop, and it really ends: a signal reaches the agent, and through it the model and the tools at work. A page that merely looks away stops nothing.

What is dangerous is asked first. Tell the files agent to write a file, and the run ends with a question. You approve the call, change its arguments, or deny it and say why; the next run goes on from there, with the server's own copy of the call and not with yours.

And what only your page can do is called in the page. Say "paint the page", and I will.`

const NO_TOOL = `This page offers me no tool named "${PICK_COLOUR}", so I cannot paint it.`

/** Explains what a page can do with a run, at a length that leaves time to try it. */
export function guide (options: GuideOptions = {}): Agent {
  const wordMs = options.wordMs ?? 20
  return {
    name: 'guide',
    description: 'Explains streaming at length, and paints the page with a tool of the page.',
    capabilities: { clientTools: true, restartable: true },

    async * stream (input, context) {
      const picked = newestResult(input)
      if (picked !== undefined) return yield * answer(picked, input, context, wordMs)
      const question = textOf(input.messages.findLast(({ role }) => role === 'USER')?.content ?? [])
      if (/\b(paint|colou?r)/i.test(question)) return yield * paint(question, input, context, wordMs)
      yield * think('The page asks for a tour. I talk long enough that there is something to reload, to lose, and to stop.', TOUR, question, context, wordMs)
    }
  }
}

async function * paint (question: string, input: AgentInput, context: RuntimeContext, wordMs: number): AsyncGenerator<AgentEventInit, void, undefined> {
  // The request brings the page's tools; this agent has none of its own.
  const tool = input.tools?.definitions.find(({ name }) => name === PICK_COLOUR)
  if (tool === undefined) return yield * think('Only the page can paint itself, and it says nothing of how.', NO_TOOL, question, context, wordMs)
  const replyId = randomUUID()
  yield * think('Only the page can paint itself. It has a tool for that: I call it and wait.', 'Choose a colour:', question, context, wordMs, replyId)
  // Nothing executes it here: the run ends, and the page starts the next one with what came of it.
  yield * runTool(tool, { id: `call-${randomUUID()}`, name: PICK_COLOUR, input: { question: 'Which colour shall this page have?' } }, context, { replyId, announce: true })
}

async function * answer (result: ToolResultBlock, input: AgentInput, context: RuntimeContext, wordMs: number): AsyncGenerator<AgentEventInit, void, undefined> {
  const told = textOf(result.output)
  const text = result.state === 'success' ? `The page is ${told} now.` : `The page stays as it is: ${told}`
  yield * think('The page has answered.', text, told, context, wordMs)
}

/** One model call: a thought, then a text. */
async function * think (thought: string, text: string, question: string, { signal }: RuntimeContext, wordMs: number, replyId = randomUUID() as string): AsyncGenerator<AgentEventInit, void, undefined> {
  yield { type: 'MODEL_CALL_START', replyId, model: 'guide' }
  yield * say(thought, { replyId, blockId: 'thinking', isThought: true, wordMs, signal })
  yield * say(text, { replyId, wordMs, signal })
  yield { type: 'MODEL_CALL_END', replyId, usage: wordUsage(question, `${thought} ${text}`), model: 'guide' }
}

/** What the page answered, when that is the newest thing in the conversation. */
function newestResult (input: AgentInput): ToolResultBlock | undefined {
  const newest = input.messages.at(-1)
  return newest?.role === 'TOOL' ? newest.content.find((block) => block.type === 'tool_result' && block.name === PICK_COLOUR) as ToolResultBlock | undefined : undefined
}
