import type { Agent } from './agent.ts'
import { contextKey, deriveContext, type RuntimeContext } from './context.ts'
import type { Decision } from './decision.ts'
import { AgentError, toAgentError } from './errors.ts'
import { withSource } from './forward.ts'
import type { AgentInput } from './input.ts'
import { type JsonObject } from './json.ts'
import { type Msg, textOf } from './message.ts'
import { Normaliser } from './normaliser.ts'
import { type Pending } from './pending.ts'
import { runAgent } from './run-agent.ts'
import { newId } from './stamp.ts'
import { type Tool, type ToolContext, type ToolOutput, ToolSuspended, type ToolYield } from './tool.ts'

/** Options of {@link asTool}. */
export interface AsToolOptions {
  /** @default the agent's name, with anything but letters, digits, `_` and `-` replaced by `_` */
  readonly name?: string
  /** @default the agent's description */
  readonly description?: string
  /** JSON Schema of the tool's input. @default `{ prompt: string }` */
  readonly parameters?: JsonObject
  /** The child's messages. @default one of the user with `prompt`, or the input's JSON without one */
  readonly toMessages?: (input: JsonObject) => Msg[]
  /** Path of the child's events. @default the agent's name; a second one running at the same time gets `-2` */
  readonly source?: string
  /** A human must approve before the child runs. @default false */
  readonly needsApproval?: Tool['needsApproval']
  /**
   * What a child's pause does: `raise` suspends the parent's call and asks at the root, whose answers come back by
   * `RunToolOptions.resume`; `report` tells the parent's model that it cannot go on.
   * @default 'raise' for a child that declares `capabilities.resume`, else 'report'
   */
  readonly onPause?: 'raise' | 'report'
}

const prompt: JsonObject = {
  type: 'object', properties: { prompt: { type: 'string', description: 'The task, with everything that is needed to do it.' } }, required: ['prompt']
}

/** Child paths in use, by run. */
const sources = contextKey<Set<string>>('agent sources')

/** How often each call has run a child in this execution, children's own calls with them. */
const runs = contextKey<Map<string, number>>('agent runs')

/**
 * Makes an agent a tool of a parent. Its events are passed on live under a path of their own, its last message's
 * text is the result, the parent's signal stops it, the caller's deny rules bind it, and its session is its own:
 * `<parent's session>#<path>`. The same call of the same run has the same child run, `<parent's run>#<call>`.
 */
export function asTool (agent: Agent, options: AsToolOptions = {}): Tool {
  const description = options.description ?? agent.description
  return Object.freeze({
    name: options.name ?? agent.name.replace(/[^\w-]/g, '_'),
    ...description !== undefined && { description },
    parameters: options.parameters ?? prompt,
    ...options.needsApproval !== undefined && { needsApproval: options.needsApproval },
    execute: (input: JsonObject, context: ToolContext) => runChild(agent, input, context, options)
  })
}

async function * runChild (agent: Agent, input: JsonObject, context: ToolContext, options: AsToolOptions): AsyncGenerator<ToolYield, ToolOutput, undefined> {
  const { runtime, resume } = context
  if (runtime.denyRules.length > 0 && agent.capabilities?.denyRules !== true) {
    throw new AgentError({ code: 'deny_rules_unsupported', message: `${agent.name} cannot keep to the deny rules of this run.`, expose: true })
  }
  const source = takeSource(runtime, options.source ?? agent.name)
  try {
    // Watches what the events add up to; runAgent has repaired them already.
    const watcher = new Normaliser({ agentName: agent.name, sessionId: runtime.sessionId })
    const child = deriveContext(runtime, {
      signal: context.signal, sessionId: `${runtime.sessionId}#${options.source ?? agent.name}`, runId: childRun(runtime, context.toolCallId)
    })
    try {
      for await (const event of runAgent(agent, inputOf(input, resume, options), child)) {
        watcher.push(event, discard)
        yield withSource(event.type === 'AGENT_START' ? { ...event, metadata: { ...event.metadata, parentToolCallId: context.toolCallId } } : event, source)
      }
    } catch (error) {
      // A failed stream has no end, but the parent's goes on: the child must not look as if it did too.
      yield { type: 'AGENT_END', source, metadata: { error: toAgentError(error).code } }
      throw error
    }
    context.signal.throwIfAborted()
    const { pending, message } = watcher
    return pending.length === 0 ? textOf(message) : pause(agent, pending, options)
  } finally {
    runtime.get(sources)?.delete(source)
  }
}

/**
 * The same call of the same run has the same child's run, also when it is taken up again or the parent is started anew: a child that
 * works elsewhere finds what it has begun. Some models give several calls one id: each of them is a run of its own.
 */
function childRun (runtime: RuntimeContext, toolCallId: string): string {
  let counts = runtime.get(runs)
  if (counts === undefined) runtime.set(runs, counts = new Map())
  const run = `${runtime.runId}#${toolCallId}`
  const count = (counts.get(run) ?? 0) + 1
  counts.set(run, count)
  return count === 1 ? run : `${run}-${count}`
}

function inputOf (input: JsonObject, resume: readonly Decision[], options: AsToolOptions): AgentInput {
  if (resume.length > 0) return { messages: [], history: 'append', resume: [...resume] }
  return { messages: (options.toMessages ?? promptMessages)(input), history: 'append' }
}

function promptMessages (input: JsonObject): Msg[] {
  const text = typeof input.prompt === 'string' ? input.prompt : JSON.stringify(input)
  return [{ id: newId(), role: 'USER', content: [{ type: 'text', text }] }]
}

function pause (agent: Agent, pending: readonly Pending[], options: AsToolOptions): never {
  const onPause = options.onPause ?? (agent.capabilities?.resume === true ? 'raise' : 'report')
  if (onPause === 'raise') throw new ToolSuspended(`${agent.name} waits for an answer.`, pending)
  const names = pending.map((item) => item.kind === 'input' ? item.request.reason : item.toolCall.name)
  throw new AgentError({
    code: 'child_paused', message: `${agent.name} stopped: it needs an answer that it cannot get here (${names.join(', ')}).`, expose: true
  })
}

/** A path that no child of the run uses at the moment: the streams of two children may not share one. */
function takeSource (runtime: RuntimeContext, wanted: string): string {
  let taken = runtime.get(sources)
  if (taken === undefined) runtime.set(sources, taken = new Set())
  let source = wanted
  for (let n = 2; taken.has(source); n++) source = `${wanted}-${n}`
  taken.add(source)
  return source
}

function discard (): void {}
