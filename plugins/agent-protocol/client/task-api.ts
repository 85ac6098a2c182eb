import { callJson, type HttpResponse, NetNotJsonError, sendRequest, SseReader } from '../../../lib/net/index.ts'
import { TaskAnswerError } from './errors.ts'
import { type ResolvedOptions } from './options.ts'
import { isUnknown, readSnapshot, type TaskSnapshot } from './snapshot.ts'

/** What opening a task's events gives. */
export type OpenedEvents =
  | { readonly kind: 'open', readonly reader: SseReader }
  /** The service has no streams. */
  | { readonly kind: 'unsupported' }
  /** Everything was told. */
  | { readonly kind: 'complete' }

type ApiOptions = Pick<ResolvedOptions, 'url' | 'headers' | 'callTimeoutMs' | 'maxBodyBytes' | 'maxEventBytes' | 'idleMs' | 'connections'>

/** The task service's routes (agent-protocol 2), each a single attempt. An error status is thrown as {@link TaskAnswerError}. */
export class TaskApi {
  readonly #options: ApiOptions
  readonly #base: string

  constructor (options: ApiOptions) {
    this.#options = options
    this.#base = options.url.href.replace(/\/+$/, '')
  }

  async submit (body: object, signal?: AbortSignal): Promise<void> {
    await this.#call('POST', '/tasks', body, signal)
  }

  /** Undefined when there is no such task. */
  async snapshot (taskId: string, signal?: AbortSignal): Promise<TaskSnapshot | undefined> {
    return await this.#snapshot(taskId, '', signal)
  }

  /** Waits at the service for at most so many seconds; 0 gives what is there at once. */
  async wait (taskId: string, seconds: number, signal?: AbortSignal): Promise<TaskSnapshot | undefined> {
    return await this.#snapshot(taskId, `/wait?timeout_seconds=${seconds}`, signal)
  }

  async cancel (taskId: string, signal?: AbortSignal): Promise<void> {
    await this.#call('POST', `${taskPath(taskId)}/cancel`, undefined, signal)
  }

  async resume (taskId: string, body: object, signal?: AbortSignal): Promise<void> {
    await this.#call('POST', `${taskPath(taskId)}/resume`, body, signal)
  }

  /** Opens the stream of events behind `after`. */
  async events (taskId: string, after: number, signal: AbortSignal): Promise<OpenedEvents> {
    const { callTimeoutMs, connections, maxEventBytes, idleMs } = this.#options
    const response = await sendRequest({
      method: 'GET',
      url: this.#url(`${taskPath(taskId)}/events?from_seq=${after}`),
      headers: { ...await this.#headers(), accept: 'text/event-stream', 'cache-control': 'no-store', ...after > 0 && { 'last-event-id': String(after) } },
      headersTimeoutMs: callTimeoutMs,
      agent: connections,
      signal
    })
    if (response.status === 200 && response.headers['content-type']?.startsWith('text/event-stream') === true) {
      return { kind: 'open', reader: new SseReader(response, { maxEventBytes, idleMs }) }
    }
    response.close()
    return this.#notOpened(response)
  }

  #notOpened ({ status, headers }: HttpResponse): OpenedEvents {
    if (status === 204) return { kind: 'complete' }
    // 404 may also say that there is no such task: the snapshot tells which (agent-protocol 5.3).
    if (status === 200 || status === 404 || status === 405 || status === 406 || status === 501) return { kind: 'unsupported' }
    throw new TaskAnswerError(status, headers, undefined)
  }

  async #snapshot (taskId: string, rest: string, signal?: AbortSignal): Promise<TaskSnapshot | undefined> {
    const path = taskPath(taskId) + rest
    try {
      const snapshot = readSnapshot(taskId, await this.#call('GET', path, undefined, signal))
      if (snapshot === undefined) throw new NetNotJsonError(this.#url(path).origin, 200)
      return isUnknown(snapshot) ? undefined : snapshot
    } catch (error) {
      if (error instanceof TaskAnswerError && error.status === 404) return undefined
      throw error
    }
  }

  async #call (method: string, path: string, body: object | undefined, signal: AbortSignal | undefined): Promise<unknown> {
    const { callTimeoutMs, maxBodyBytes, connections } = this.#options
    const answer = await callJson({
      method, url: this.#url(path), body, headers: await this.#headers(), timeoutMs: callTimeoutMs, maxBytes: maxBodyBytes, agent: connections, signal
    })
    // A redirect is none of ours to follow: it would take the headers elsewhere.
    if (answer.status < 200 || answer.status >= 300) throw new TaskAnswerError(answer.status, answer.headers, answer.body)
    return answer.body
  }

  #url (path: string): URL {
    return new URL(this.#base + path)
  }

  async #headers (): Promise<Readonly<Record<string, string>>> {
    const { headers } = this.#options
    return typeof headers === 'function' ? await headers() : headers
  }
}

function taskPath (taskId: string): string {
  return `/tasks/${encodeURIComponent(taskId)}`
}
