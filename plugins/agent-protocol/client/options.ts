import { type Agent as HttpAgent } from 'node:http'
import { type Decision, isObject, type JsonObject, type Pending } from '../../../lib/agent/index.ts'
import { InvalidOptionError, readBoolean, readChoice, readFunction, readInteger, readMs } from '../../../lib/options.ts'
import { type Detail, DETAIL_LEVELS } from '../wire.ts'
import { findProblem } from './attributes.ts'

/** Headers of each request: fixed ones, or a function that is asked before each request (a token that is renewed). Never stored, never told. */
export type RequestHeaders = Readonly<Record<string, string>> | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>)

/** Answers what a task waits for; a request without an answer is denied. */
export type AskHandler = (pending: readonly Pending[], task: { readonly id: string, readonly signal: AbortSignal }) => readonly Decision[] | Promise<readonly Decision[]>

/**
 * What becomes of a task that waits for an answer: `propagate` asks whoever the run is served to, `deny` denies, a function answers.
 * The same for a task that goes on in the background.
 */
export type AskPolicy = 'propagate' | 'deny' | AskHandler

/** Options of {@link remoteAgent}. */
export interface RemoteAgentOptions {
  /** Address of the task service, with the prefix under which `/tasks` is. */
  readonly url: string | URL
  /** @default `agentId`, or 'remote' */
  readonly name?: string
  /** One sentence for a parent agent that uses it as a tool. */
  readonly description?: string
  /** The agent's name at the service. @default `name` where that is given, else the service's default agent */
  readonly agentId?: string
  /** @default none */
  readonly headers?: RequestHeaders
  /** How much of the task's events the service tells; `verbose` is what a local agent would tell. @default 'verbose' */
  readonly detail?: Detail
  /** Follow the task's events; false: poll its status, and tell the result alone. @default true */
  readonly stream?: boolean
  /** @default 'propagate' */
  readonly askPolicy?: AskPolicy
  /** What a denied call's model is told. @default 'Permission denied by user' of the service */
  readonly denyReason?: string
  /** Sent with every task as `context.attributes`; those of the call are laid over them. @default none */
  readonly attributes?: JsonObject
  /** `per-task`: each task is a conversation of its own. `stable`: all tasks of a local session continue one conversation over there. @default 'per-task' */
  readonly sessionMode?: 'per-task' | 'stable'
  /** Milliseconds one call may take. @default 30000 */
  readonly callTimeoutMs?: number
  /** Milliseconds that cancelling a task may take, retries included, when a run is aborted. @default 4000 */
  readonly cancelTimeoutMs?: number
  /** Milliseconds without a byte after which a stream counts as dead; 2.5 heartbeats of the service. @default 37500 */
  readonly idleMs?: number
  /** Milliseconds without an event after which the task's status is looked at beside its stream. @default 5000 */
  readonly silenceMs?: number
  /** Attempts in a row that may fail before the service counts as unreachable. @default 8 */
  readonly maxAttempts?: number
  /** Milliseconds before the second attempt; each further wait is twice as long, with jitter. @default 500 */
  readonly retryBaseMs?: number
  /** Milliseconds of the longest wait between attempts. @default 15000 */
  readonly retryMaxMs?: number
  /** Milliseconds between the first polls where the service has no streams. @default 200 */
  readonly pollMs?: number
  /** Milliseconds between later polls. @default 3200 */
  readonly pollMaxMs?: number
  /** Largest event that is read; a stream that brings a larger one is given up for polling. @default 4194304 */
  readonly maxEventBytes?: number
  /** Largest answer of a call. @default 4194304 */
  readonly maxBodyBytes?: number
  /** Node's connection pool, for a proxy or certificates of one's own. @default node's global one */
  readonly connections?: HttpAgent
}

/** The options with everything that is absent filled in. */
export interface ResolvedOptions extends Required<Omit<RemoteAgentOptions, 'url' | 'description' | 'agentId' | 'denyReason' | 'connections'>> {
  readonly url: URL
  readonly description: string | undefined
  readonly agentId: string | undefined
  readonly denyReason: string | undefined
  readonly connections: HttpAgent | undefined
}

const MIB = 1_048_576

/** @throws AGT_ERR_OPTION_INVALID */
export function resolveRemoteAgentOptions (options: RemoteAgentOptions): ResolvedOptions {
  const { agentId, name, attributes = {}, askPolicy = 'propagate' } = options
  const problem = findProblem(attributes)
  if (problem !== undefined) throw new InvalidOptionError('attributes', 'that', `they must be JSON, but ${problem}`)
  return {
    url: readUrl(options.url),
    name: readName('name', name ?? agentId ?? 'remote'),
    description: options.description,
    agentId: agentId === undefined ? name : readName('agentId', agentId),
    headers: readHeaders(options.headers ?? {}),
    detail: readChoice('detail', options.detail, DETAIL_LEVELS, 'verbose'),
    stream: readBoolean('stream', options.stream, true),
    askPolicy: typeof askPolicy === 'function' ? askPolicy : readChoice('askPolicy', askPolicy, ['propagate', 'deny'] as const, 'propagate'),
    denyReason: options.denyReason,
    attributes,
    sessionMode: readChoice('sessionMode', options.sessionMode, ['per-task', 'stable'], 'per-task'),
    callTimeoutMs: readMs('callTimeoutMs', options.callTimeoutMs, { default: 30_000, min: 1 }),
    cancelTimeoutMs: readMs('cancelTimeoutMs', options.cancelTimeoutMs, { default: 4_000, min: 1 }),
    idleMs: readMs('idleMs', options.idleMs, { default: 37_500, min: 1 }),
    silenceMs: readMs('silenceMs', options.silenceMs, { default: 5_000, min: 1 }),
    maxAttempts: readInteger('maxAttempts', options.maxAttempts, { default: 8, min: 1, max: 1_000 }),
    retryBaseMs: readMs('retryBaseMs', options.retryBaseMs, { default: 500, min: 1 }),
    retryMaxMs: readMs('retryMaxMs', options.retryMaxMs, { default: 15_000, min: 1 }),
    pollMs: readMs('pollMs', options.pollMs, { default: 200, min: 1 }),
    pollMaxMs: readMs('pollMaxMs', options.pollMaxMs, { default: 3_200, min: 1 }),
    maxEventBytes: readInteger('maxEventBytes', options.maxEventBytes, { default: 4 * MIB, min: 1_024 }),
    maxBodyBytes: readInteger('maxBodyBytes', options.maxBodyBytes, { default: 4 * MIB, min: 1_024 }),
    connections: options.connections
  }
}

function readUrl (value: string | URL): URL {
  const text = String(value)
  if (!URL.canParse(text)) throw new InvalidOptionError('url', JSON.stringify(text), 'it is an address')
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new InvalidOptionError('url', JSON.stringify(text), 'it is an http or https address')
  // Credentials in an address end up in messages.
  if (url.username !== '' || url.password !== '') throw new InvalidOptionError('url', 'an address with credentials', 'they belong into `headers`')
  if (url.search !== '' || url.hash !== '') throw new InvalidOptionError('url', JSON.stringify(text), 'it has neither a query nor a fragment')
  return url
}

function readName (option: string, value: string): string {
  if (typeof value !== 'string' || value.trim() === '') throw new InvalidOptionError(option, JSON.stringify(value), 'it is a name')
  return value
}

function readHeaders (headers: RequestHeaders): RequestHeaders {
  if (typeof headers === 'function') return readFunction('headers', headers) ?? headers
  if (!isObject(headers)) throw new InvalidOptionError('headers', 'that', 'it is an object or a function')
  for (const [name, value] of Object.entries(headers)) {
    // The value is a secret: it is in no message.
    if (typeof value !== 'string') throw new InvalidOptionError(`headers["${name}"]`, 'that', 'it is a text')
  }
  return headers
}
