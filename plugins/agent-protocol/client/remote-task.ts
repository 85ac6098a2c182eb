import { AgentError, type Decision, type Pending, pendingId } from '../../../lib/agent/index.ts'
import { TaskAnswerError, TaskLostError, toAgentError } from './errors.ts'
import { TaskFeed } from './feed.ts'
import { insist } from './insist.ts'
import { type ResolvedOptions } from './options.ts'
import { decisionId, denials, resumeBody } from './relay.ts'
import { type TaskSnapshot } from './snapshot.ts'
import { type TaskApi } from './task-api.ts'
import { type TaskEnd, type TaskUpdate } from './task-update.ts'

/** How often an ask policy answers before the task counts as one that never stops asking. */
const MAX_ROUNDS = 100

/** What a wait for a task gave: its end, or that it waits for answers that the ask policy leaves to others. */
export type TaskResult = TaskEnd | { readonly kind: 'waiting', readonly pending: readonly Pending[] }

/** Options of what may take long. */
export interface WaitOptions {
  readonly signal?: AbortSignal
}

/** One task of a service, seen from outside. It goes on whether anybody looks or not. */
export class RemoteTask {
  readonly id: string
  readonly #api: TaskApi
  readonly #options: ResolvedOptions
  readonly #feed: TaskFeed
  #isFollowed = false
  #rounds = 0

  /** Made by {@link RemoteAgent}. `after` is the sequence of the newest event that is known. */
  constructor (id: string, api: TaskApi, options: ResolvedOptions, after: number) {
    this.id = id
    this.#api = api
    this.#options = options
    this.#feed = new TaskFeed(api, id, after, options)
  }

  /** Sequence of the newest event that was told: what to attach with after a restart. */
  get lastSeq (): number {
    return this.#feed.last
  }

  /**
   * Tells the task to its end, over as many connections as it takes; each thing once, in order. One reader at a time. What the ask
   * policy answers is answered before the next update; with `propagate` a `waiting` is for the reader to {@link RemoteTask.resume}.
   * @throws AgentError when the service cannot be reached, refuses, or has lost the task; the signal's reason
   */
  async * events ({ signal = new AbortController().signal }: WaitOptions = {}): AsyncGenerator<TaskUpdate, void, undefined> {
    if (this.#isFollowed) throw new AgentError({ code: 'already_followed', message: `The events of task ${this.id} have a reader already.` })
    this.#isFollowed = true
    try {
      for await (const update of this.#feed.follow(signal)) {
        if (update.kind !== 'waiting' || this.#options.askPolicy === 'propagate') yield update
        else await this.#answer(update.pending, signal)
      }
    } catch (error) {
      signal.throwIfAborted()
      throw toAgentError(error, this.#options.name)
    } finally {
      this.#isFollowed = false
    }
  }

  /** Waits for the end, or for a question that the ask policy leaves to others. @throws like {@link RemoteTask.events} */
  async result (options: WaitOptions = {}): Promise<TaskResult> {
    for await (const update of this.events(options)) {
      if (update.kind === 'waiting' || update.kind === 'end') return update
    }
    throw new AgentError({ code: 'internal_error', message: `Task ${this.id} told no end` })
  }

  /**
   * Answers what the task waits for; what has no answer is denied by the service. Repeated when it gets lost, but never given to a
   * later question. False when none of the questions is open any more: they were answered, by an earlier attempt or by others.
   * @throws AgentError when the service refuses
   */
  async resume (decisions: readonly Decision[], { signal }: WaitOptions = {}): Promise<boolean> {
    const body = resumeBody(decisions)
    const ids = new Set(decisions.map(decisionId))
    let first: TaskSnapshot | undefined
    try {
      const isGiven = await insist(async () => {
        const snapshot = await this.#waiting(ids, signal)
        first ??= snapshot
        // Another pause may ask for the same call again: that is another question.
        if (snapshot === undefined || snapshot.confirmId !== first?.confirmId) return false
        return await this.#give({ ...body, ...snapshot.confirmId !== undefined && { confirm_id: snapshot.confirmId } }, ids, signal)
      }, this.#options, signal)
      this.#feed.answered()
      return isGiven
    } catch (error) {
      signal?.throwIfAborted()
      throw toAgentError(error, this.#options.name)
    }
  }

  /** Ends the task. Bounded by `cancelTimeoutMs`, whatever the service does. @throws AgentError when it could not be told */
  async cancel (): Promise<void> {
    const controller = new AbortController()
    const timer = setTimeout(() => { controller.abort(new Error('Cancelling took too long')) }, this.#options.cancelTimeoutMs).unref()
    try {
      await insist(() => this.#api.cancel(this.id, controller.signal), this.#options, controller.signal)
    } catch (error) {
      if (error instanceof TaskAnswerError && error.status === 404) return // it is gone
      throw controller.signal.aborted
        ? new AgentError({ code: 'remote_unreachable', message: `Task ${this.id} could not be cancelled in time.`, retryable: true, cause: error })
        : toAgentError(error, this.#options.name)
    } finally {
      clearTimeout(timer)
    }
  }

  /** How the task stands. @throws AgentError, `task_not_found` when there is none */
  async snapshot ({ signal }: WaitOptions = {}): Promise<TaskSnapshot> {
    const snapshot = await this.find({ signal })
    if (snapshot === undefined) throw toAgentError(new TaskLostError(this.id), this.#options.name)
    return snapshot
  }

  /** How the task stands; undefined when there is none. @throws AgentError */
  async find ({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<TaskSnapshot | undefined> {
    try {
      return await insist(() => this.#api.snapshot(this.id, signal), this.#options, signal)
    } catch (error) {
      signal?.throwIfAborted()
      throw toAgentError(error, this.#options.name)
    }
  }

  async #answer (pending: readonly Pending[], signal: AbortSignal): Promise<void> {
    const { askPolicy, denyReason } = this.#options
    if (++this.#rounds > MAX_ROUNDS) {
      throw new AgentError({ code: 'confirmation_required', message: `The remote agent ${this.#options.name} does not stop asking.`, expose: true })
    }
    const answers = typeof askPolicy === 'function' ? await askPolicy(pending, { id: this.id, signal }) : []
    const answered = new Set(answers.map(decisionId))
    const missing = pending.filter((item) => !answered.has(pendingId(item)))
    await this.resume([...answers, ...denials(missing, denyReason)], { signal })
  }

  async #give (body: object, ids: ReadonlySet<string>, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      await this.#api.resume(this.id, body, signal)
      return true
    } catch (error) {
      if (!isConflict(error)) throw error
      // The reference refuses for a moment after it has asked; everywhere else somebody was faster.
      if (await this.#waiting(ids, signal) !== undefined) throw new TaskAnswerError(503, {}, { error: error.text })
      return false
    }
  }

  /** The task while one of these questions is still open. */
  async #waiting (ids: ReadonlySet<string>, signal: AbortSignal | undefined): Promise<TaskSnapshot | undefined> {
    const snapshot = await this.snapshot(signal === undefined ? {} : { signal })
    return snapshot.status === 'awaiting_confirm' && snapshot.pending.some((item) => ids.has(pendingId(item))) ? snapshot : undefined
  }
}

/** Somebody was faster, or the service is not ready: other conflicts are final. */
function isConflict (error: unknown): error is TaskAnswerError {
  return error instanceof TaskAnswerError && error.status === 409 && (error.reason === undefined || error.reason === 'not_awaiting' || error.reason === 'stale_confirm') &&
    !/disabled/i.test(error.text)
}
