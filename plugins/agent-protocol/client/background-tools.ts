import { type Agent, AgentError, type AgentEventInit, asTool, defineTool, type RuntimeContext, textOf, type Tool } from '../../../lib/agent/index.ts'
import { type RemoteAgent } from './remote-agent.ts'

/** Options of {@link backgroundTools}. */
export interface BackgroundToolsOptions {
  /** What the tools' names begin with. @default the agent's name, with anything but letters, digits, `_` and `-` replaced by `_` */
  readonly name?: string
  /** Ends what looks after tasks in the background, not the tasks: the server's, when it closes. @default never */
  readonly signal?: AbortSignal
  /** Whether a task is cancelled when the run that has started it is stopped: cancelled, timed out, left, or ended with its server. One that ends by itself stops nothing. @default false */
  readonly cancelOnParentEnd?: boolean
}

/** Seconds that the result is waited for where the model does not say, and at most. */
const WAIT_SECONDS = 60
const MAX_WAIT_SECONDS = 600

/** Tasks of which it is remembered what was told of them. */
const REMEMBERED = 1_000

/**
 * Tools for a parent that goes on while a remote agent works: `<name>_start` gives a task's id, `<name>_result` waits for it,
 * shows its events and asks its questions, `<name>_cancel` ends it. The agent's ask policy answers also while nobody waits; with
 * `propagate` a question waits for who asks for the result. A session can name its own tasks alone.
 */
export function backgroundTools (agent: RemoteAgent, options: BackgroundToolsOptions = {}): readonly [start: Tool, result: Tool, cancel: Tool] {
  const name = options.name ?? agent.name.replace(/[^\w-]/g, '_')
  return [startTool(agent, name, options), resultTool(agent, name), cancelTool(agent, name)]
}

function startTool (agent: RemoteAgent, name: string, { signal, cancelOnParentEnd = false }: BackgroundToolsOptions): Tool {
  return defineTool({
    name: `${name}_start`,
    description: `Starts a task in the background and gives its id. ${agent.description ?? ''}`.trim(),
    parameters: { type: 'object', properties: { prompt: { type: 'string', description: 'The task, with everything that is needed to do it.' } }, required: ['prompt'] },
    execute: async ({ prompt }, { runtime, toolCallId, signal: callSignal }) => {
      const { userId, denyRules, attributes, get } = runtime
      const task = await agent.submit({
        input: String(prompt),
        context: {
          sessionId: childSession(agent, runtime), runId: `${runtime.runId}#${toolCallId}`, denyRules, attributes, get, signal: callSignal, ...userId !== undefined && { userId }
        }
      })
      // One that is over by then is not changed; what goes wrong nobody can be told any more.
      if (cancelOnParentEnd) runtime.signal.addEventListener('abort', () => { task.cancel().catch(() => {}) }, { once: true })
      // Whoever asks for the result is told what goes wrong.
      if (agent.answersItself) task.result({ ...signal !== undefined && { signal } }).catch(() => {})
      return { task_id: task.id, status: 'running' }
    }
  })
}

function resultTool (agent: RemoteAgent, name: string): Tool {
  const told = new Map<string, number>()
  const attached: Agent = {
    name: agent.name,
    capabilities: agent.capabilities,
    stream: (input, context) => {
      if (input.resume !== undefined && input.resume.length > 0) return agent.stream(input, context)
      const { task_id: taskId, wait_seconds: seconds = WAIT_SECONDS } = JSON.parse(textOf(input.messages[0]?.content ?? [])) as { task_id: string, wait_seconds?: number }
      return wait(agent, taskId, seconds, context, told)
    }
  }
  return asTool(attached, {
    name: `${name}_result`,
    description: `Waits for a task that ${name}_start has started, and gives its result.`,
    parameters: {
      type: 'object',
      properties: { task_id: { type: 'string' }, wait_seconds: { type: 'integer', minimum: 0, maximum: MAX_WAIT_SECONDS } },
      required: ['task_id']
    }
  })
}

function cancelTool (agent: RemoteAgent, name: string): Tool {
  return defineTool({
    name: `${name}_cancel`,
    description: `Ends a task that ${name}_start has started.`,
    parameters: { type: 'object', properties: { task_id: { type: 'string' } }, required: ['task_id'] },
    execute: async ({ task_id: taskId }, { runtime }) => {
      checkOwner(agent, String(taskId), { ...runtime, sessionId: childSession(agent, runtime) })
      await agent.attach(String(taskId)).cancel()
      return { task_id: String(taskId), status: 'cancelled' }
    }
  })
}

/** The events of a task that were not told yet, for so long; without its end: that it is still running. */
async function * wait (agent: RemoteAgent, taskId: string, seconds: number, context: RuntimeContext, told: Map<string, number>): AsyncGenerator<AgentEventInit, void, undefined> {
  checkOwner(agent, taskId, context)
  const task = agent.attach(taskId, { lastSeq: told.get(taskId) ?? 0 })
  const limit = new AbortController()
  const onAbort = (): void => { limit.abort(context.signal.reason) }
  if (context.signal.aborted) onAbort()
  else context.signal.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(() => { limit.abort() }, seconds * 1_000).unref()
  try {
    yield * agent.follow(task, { sessionId: context.sessionId, signal: limit.signal }, { onLeave: 'continue' })
  } catch (error) {
    if (context.signal.aborted || !limit.signal.aborted) throw error
    yield { type: 'TEXT_BLOCK_DELTA', delta: `The task ${taskId} is still running.` }
  } finally {
    clearTimeout(timer)
    context.signal.removeEventListener('abort', onAbort)
    remember(told, taskId, task.lastSeq)
  }
}

/** A model may name any task; the service would show whatever these credentials may see. */
function checkOwner (agent: RemoteAgent, taskId: string, context: Pick<RuntimeContext, 'sessionId' | 'userId'>): void {
  if (!agent.owns(taskId, context)) throw new AgentError({ code: 'task_not_found', message: `There is no task ${taskId} in this conversation.`, statusCode: 404, expose: true })
}

/** The session that {@link asTool} gives a child of this name. */
function childSession ({ name }: RemoteAgent, { sessionId }: Pick<RuntimeContext, 'sessionId'>): string {
  return `${sessionId}#${name}`
}

function remember (told: Map<string, number>, taskId: string, lastSeq: number): void {
  told.delete(taskId)
  told.set(taskId, lastSeq)
  const [oldest] = told.keys()
  if (told.size > REMEMBERED && oldest !== undefined) told.delete(oldest)
}
