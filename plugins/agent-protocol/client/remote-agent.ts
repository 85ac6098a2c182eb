import { type Agent, type AgentCapabilities, AgentError, type AgentEventInit, type AgentInput, type Decision, type RuntimeContext } from '../../../lib/agent/index.ts'
import { TaskAnswerError, toAgentError } from './errors.ts'
import { insist } from './insist.ts'
import { type RemoteAgentOptions, resolveRemoteAgentOptions, type ResolvedOptions } from './options.ts'
import { Projection } from './projection.ts'
import { relayedAnswers } from './relay.ts'
import { RemoteTask } from './remote-task.ts'
import { submissionOf, taskPrefix, textOfInput } from './submission.ts'
import { TaskApi } from './task-api.ts'

/** Tasks of one run and input that were cancelled before another one is refused. */
const MAX_GENERATIONS = 20

/** What {@link RemoteAgent.submit} takes. */
export interface SubmitRequest {
  /** The task as text, or an agent's input, whose newest text it is. */
  readonly input: string | AgentInput
  /** Whose run it is: the same run with the same input is the same task. */
  readonly context: SubmitContext
  /** Ends the submission, and takes it back. @default the context's signal */
  readonly signal?: AbortSignal
}

/** What a submission needs of a run's context. */
export type SubmitContext = Pick<RuntimeContext, 'sessionId' | 'userId' | 'runId' | 'denyRules' | 'attributes' | 'get' | 'signal'>

/** Options of {@link RemoteAgent.follow}. */
export interface FollowOptions {
  /** What leaving, aborting or failing does to the task. @default 'cancel' */
  readonly onLeave?: 'cancel' | 'continue'
}

/** Makes an agent of a task service's. @throws AGT_ERR_OPTION_INVALID */
export function remoteAgent (options: RemoteAgentOptions): RemoteAgent {
  return new RemoteAgent(options)
}

/** An agent behind a task service, as a local {@link Agent}: its events, its questions, its result; its task ends with the run. */
export class RemoteAgent implements Agent {
  readonly name: string
  readonly description?: string
  readonly capabilities: AgentCapabilities = Object.freeze({ resume: true, denyRules: true, restartable: true })
  readonly #options: ResolvedOptions
  readonly #api: TaskApi

  constructor (options: RemoteAgentOptions) {
    const resolved = this.#options = resolveRemoteAgentOptions(options)
    this.#api = new TaskApi(resolved)
    this.name = resolved.name
    if (resolved.description !== undefined) this.description = resolved.description
  }

  /**
   * Submits the run's task and follows it, or goes on with the one that the run has already. Ends when the task ends or asks; leaving
   * or aborting it cancels the task, for at most `cancelTimeoutMs`.
   */
  async * stream (input: AgentInput, context: RuntimeContext): AsyncGenerator<AgentEventInit, void, undefined> {
    const { resume = [] } = input
    if (resume.length > 0) {
      yield * this.#continue(resume, context)
    } else {
      yield * this.follow(await this.submit({ input, context }), context)
    }
  }

  /** Makes the run's task and goes on without it: {@link RemoteTask.result} waits for it and keeps to the ask policy. @throws AgentError */
  async submit ({ input, context, signal = context.signal }: SubmitRequest): Promise<RemoteTask> {
    const text = typeof input === 'string' ? input : textOfInput(input)
    for (let generation = 1; generation <= MAX_GENERATIONS; generation++) {
      const { taskId, body } = submissionOf(text, context, this.#options, generation)
      const task = this.attach(taskId)
      // Asked first: the reference starts a task anew when it is submitted again while it waits.
      const known = await task.find({ signal })
      if (known?.status === 'cancelled') continue
      if (known === undefined) await this.#submit(task, body, signal)
      return task
    }
    throw new AgentError({ code: 'remote_cancelled', message: `The tasks of this run of ${this.name} were cancelled.`, expose: true })
  }

  /** A task by its id, seen from behind `lastSeq` on. Asks nothing yet. @default lastSeq 0, its beginning */
  attach (taskId: string, { lastSeq = 0 }: { readonly lastSeq?: number } = {}): RemoteTask {
    return new RemoteTask(taskId, this.#api, this.#options, lastSeq)
  }

  /** Questions need nobody: the ask policy answers them. */
  get answersItself (): boolean {
    return this.#options.askPolicy !== 'propagate'
  }

  /** Whether a task is one of this agent's for this user and session. */
  owns (taskId: string, context: Pick<RuntimeContext, 'userId' | 'sessionId'>): boolean {
    return taskId.startsWith(taskPrefix(context, this.#options))
  }

  /** What {@link RemoteAgent.stream} does with a task that is there. */
  async * follow (task: RemoteTask, context: Pick<RuntimeContext, 'sessionId' | 'signal'>, { onLeave = 'cancel' }: FollowOptions = {}): AsyncGenerator<AgentEventInit, void, undefined> {
    const { stream, detail } = this.#options
    const projection = new Projection({
      taskId: task.id, agentName: this.name, parentSessionId: context.sessionId, isTextTold: stream && detail !== 'status'
    })
    let isSettled = false
    try {
      for await (const update of task.events({ signal: context.signal })) {
        isSettled = update.kind === 'end'
        yield * projection.take(update)
        if (update.kind !== 'waiting') continue
        isSettled = true
        return
      }
    } finally {
      if (!isSettled && onLeave === 'cancel') await giveUp(task)
    }
  }

  async * #continue (decisions: readonly Decision[], context: RuntimeContext): AsyncGenerator<AgentEventInit, void, undefined> {
    const answers = relayedAnswers(decisions)
    if (answers === undefined) {
      throw new AgentError({ code: 'unknown_pause', message: `The answers do not belong to one task of ${this.name}.`, statusCode: 409, expose: true })
    }
    const { taskId, seq } = answers.origin
    const task = this.attach(taskId, { lastSeq: seq })
    try {
      await task.resume(answers.decisions, { signal: context.signal })
    } catch (error) {
      if (context.signal.aborted) await giveUp(task)
      throw error
    }
    yield * this.follow(task, context)
  }

  async #submit (task: RemoteTask, body: object, signal: AbortSignal): Promise<void> {
    try {
      await insist(async (failures) => {
        // The answer of an earlier attempt may be lost: looked for first, for the reason above.
        if (failures > 0 && await task.find({ signal }) !== undefined) return
        await this.#api.submit(body, signal)
      }, this.#options, signal)
    } catch (error) {
      // It may have arrived.
      if (!(error instanceof TaskAnswerError)) await giveUp(task)
      signal.throwIfAborted()
      throw toAgentError(error, this.name)
    }
  }
}

/** Nobody will fetch what the task brings. What goes wrong here would hide why. */
async function giveUp (task: RemoteTask): Promise<void> {
  await task.cancel().catch(() => {})
}
