// An agent that works in a folder of its own. Listing and reading just happen; writing and deleting wait for a human.
import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import {
  runTool, textOf,
  type Agent, type AgentEventInit, type AgentInput, type ConfirmDecision, type JsonObject, type RuntimeContext, type Tool, type ToolCall, type ToolResultState
} from 'fastify-agents/agent'
import { fileTools } from './file-tools.ts'
import { say } from './speech.ts'
import { wordUsage } from './word-usage.ts'

export interface FileKeeperOptions {
  /** Folder to work in; made if it is missing. */
  readonly folder: string
  /** Milliseconds between two words. @default 20 */
  readonly wordMs?: number
}

/** What it says when it is told to do nothing. */
export const HELP = 'I keep files. Say "list", "read todo.txt", "write todo.txt: milk" or "delete todo.txt"; one line each, several at once if you like.'

/** Turns lines into tool calls, runs them in one batch, and tells what came of them. */
export async function createFileKeeper (options: FileKeeperOptions): Promise<Agent> {
  await mkdir(options.folder, { recursive: true })
  const keeper = new FileKeeper(fileTools(options.folder), options.wordMs ?? 20)
  return {
    name: 'files',
    description: 'Lists, reads, writes and deletes files in a folder of its own; changes need approval.',
    // All it needs to go on is in its input: the calls come back with the decisions.
    capabilities: { resume: true, denyRules: true },
    stream: (input, context) => keeper.answer(input, context)
  }
}

class FileKeeper {
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #wordMs: number

  constructor (tools: readonly Tool[], wordMs: number) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]))
    this.#wordMs = wordMs
  }

  async * answer (input: AgentInput, context: RuntimeContext): AsyncGenerator<AgentEventInit, void, undefined> {
    const decisions = (input.resume ?? []).filter((decision): decision is ConfirmDecision => decision.kind === 'confirm')
    if (decisions.length > 0) return yield * this.#resume(decisions, context)

    const question = newestText(input)
    const calls = commandsOf(question)
    const replyId = randomUUID()
    yield { type: 'MODEL_CALL_START', replyId, model: 'commands' }
    if (calls.length === 0) {
      yield * say(HELP, { replyId, wordMs: this.#wordMs, signal: context.signal })
    } else {
      for (const call of calls) {
        const names = { replyId, toolCallId: call.id, toolCallName: call.name }
        yield { type: 'TOOL_CALL_START', ...names, executor: 'agent' }
        yield { type: 'TOOL_CALL_DELTA', ...names, delta: JSON.stringify(call.input) }
        yield { type: 'TOOL_CALL_END', ...names }
      }
    }
    yield { type: 'MODEL_CALL_END', replyId, usage: wordUsage(question, calls.length === 0 ? HELP : JSON.stringify(calls)), model: 'commands' }
    if (calls.length > 0) yield * this.#run(calls.map((call) => ({ call })), context)
  }

  async * #resume (decisions: readonly ConfirmDecision[], context: RuntimeContext): AsyncGenerator<AgentEventInit, void, undefined> {
    const decided = decisions.flatMap((decision) => decision.toolCall === undefined ? [] : [{ call: decision.toolCall, decision }])
    yield * this.#run(decided, context)
  }

  /** Runs a batch; says what came of it unless something in it waits for a human. */
  async * #run (batch: readonly { readonly call: ToolCall, readonly decision?: ConfirmDecision }[], context: RuntimeContext): AsyncGenerator<AgentEventInit, void, undefined> {
    const replyId = randomUUID()
    const told: string[] = []
    let isWaiting = false
    for (const { call, decision } of batch) {
      const outcome = yield * runTool(this.#tools.get(call.name), call, context, { replyId, ...decision !== undefined && { decision } })
      if (outcome.kind === 'pending') isWaiting = true
      else told.push(tellResult(call.name, outcome.state, textOf(outcome.output)))
    }
    if (!isWaiting) yield * say(told.join('\n'), { replyId: randomUUID(), wordMs: this.#wordMs, signal: context.signal })
  }
}

/** One call and what came of it, in words. */
export function tellResult (name: string, state: ToolResultState, text: string): string {
  return `${name}: ${state === 'denied' ? `not done (${text})` : text}`
}

function newestText (input: AgentInput): string {
  const message = input.messages.findLast(({ role }) => role === 'USER')
  return message === undefined ? '' : textOf(message)
}

/** Reads `list`, `read NAME`, `write NAME: TEXT` and `delete NAME`, one a line. */
export function commandsOf (text: string): ToolCall[] {
  return text.split('\n').flatMap((line) => {
    const [, verb = '', rest = ''] = /^\s*(list|read|write|delete)\b\s*(.*?)\s*$/i.exec(line) ?? []
    const call = (name: string, input: JsonObject): ToolCall[] => [{ id: `call-${randomUUID()}`, name, input }]
    switch (verb.toLowerCase()) {
      case 'list': return call('list_files', {})
      case 'read': return call('read_file', { name: rest })
      case 'delete': return call('delete_file', { name: rest })
      case 'write': {
        const [, name = rest, content = ''] = /^([^:]+):\s*(.*)$/.exec(rest) ?? []
        return call('write_file', { name: name.trim(), text: content })
      }
      default: return []
    }
  })
}
