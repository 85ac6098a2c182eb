// A task service in two hundred lines: what a client may meet, as the protocol's specification describes it or as the reference does it.
import { EventEmitter, once } from 'node:events'
import { type IncomingMessage, type ServerResponse } from 'node:http'
import {
  type Agent, type AgentEvent, type AgentEventOf, createRuntimeContext, type Decision, isObject, type Msg, MsgMetadata, type Pending, resolveDecisions, RunInterrupted, runAgent, textOf,
  type ToolUseBlock
} from '../../lib/agent/index.ts'
import { detailOf, encodeTaskEvent, pendingConfirm } from '../../plugins/agent-protocol/events.ts'
import { DETAIL_LEVELS, readDetail, type TaskEvent } from '../../plugins/agent-protocol/wire.ts'
import { listen, type PlainServer } from './http-server.ts'

interface Teardown { teardown (fn: () => unknown): unknown }

/** What is special about a service. */
export interface FakeOptions {
  /** `reference`: no result but by wait, everything asked twice, unknown tasks with a good status, streams that hang after the end, ... @default 'own' */
  readonly like?: 'own' | 'reference'
  /** Answer to who wants a stream. @default 200 */
  readonly eventsStatus?: number
  /** Events kept for replay. @default 256 */
  readonly ring?: number
  /** The agent begins, and goes on, when somebody listens: as a model does, which takes its time. */
  readonly isSlow?: boolean
  /** Events with neither number nor id. @default true */
  readonly numbered?: boolean
  /** Payloads beside the flat members. @default true */
  readonly payloads?: boolean
  /** Answers a request in place of the service; false: not this one. */
  readonly before?: (request: IncomingMessage, response: ServerResponse, body: unknown) => boolean
}

/** One task as the service keeps it. */
export class FakeTask {
  readonly id: string
  readonly submission: Readonly<Record<string, unknown>>
  readonly log: { readonly seq: number, readonly frame: string }[] = []
  readonly changed = new EventEmitter().setMaxListeners(0)
  status: 'running' | 'success' | 'error' | 'cancelled' = 'running'
  isAwaiting = false
  pending: Pending[] = []
  result: string | undefined
  error: string | undefined
  lastSeq = 0
  runs = 0
  /** Streams that were opened and not closed. */
  listeners = 0
  /** The reference: the run that asked has not left its place yet. */
  isBusy = false
  /** No stream gets anything more. */
  isComplete = false
  readonly abort = new AbortController()

  constructor (id: string, submission: Readonly<Record<string, unknown>>) {
    this.id = id
    this.submission = submission
  }

  get isOver (): boolean {
    return this.status !== 'running'
  }
}

/** A running service and what it was asked. */
export interface FakeTasks extends PlainServer {
  readonly tasks: ReadonlyMap<string, FakeTask>
  /** Method and path of each request, in order. */
  readonly requests: readonly string[]
  readonly headers: readonly IncomingMessage['headers'][]
  /** Bodies of resume requests that were taken. */
  readonly resumes: readonly unknown[]
  /** The only task. */
  task (): FakeTask
}

/** Serves an agent as tasks, until the test ends. */
export async function fakeTasks (t: Teardown, agent: Agent, options: FakeOptions = {}): Promise<FakeTasks> {
  const service = new Service(agent, options)
  const server = await listen(t, (request, response) => { service.handle(request, response).catch((error: unknown) => { response.destroy(error as Error) }) })
  t.teardown(() => { for (const task of service.tasks.values()) task.abort.abort(new RunInterrupted('system')) })
  return {
    ...server,
    tasks: service.tasks,
    requests: service.requests,
    headers: service.headers,
    resumes: service.resumes,
    task: () => {
      const [task, ...others] = service.tasks.values()
      if (task === undefined || others.length > 0) throw new Error(`There are ${service.tasks.size} tasks`)
      return task
    }
  }
}

class Service {
  readonly tasks = new Map<string, FakeTask>()
  readonly requests: string[] = []
  readonly headers: IncomingMessage['headers'][] = []
  readonly resumes: unknown[] = []
  readonly #agent: Agent
  readonly #options: FakeOptions

  constructor (agent: Agent, options: FakeOptions) {
    this.#agent = agent
    this.#options = options
  }

  get #isReference (): boolean {
    return this.#options.like === 'reference'
  }

  async handle (request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const body: unknown = text === '' ? undefined : JSON.parse(text)
    this.requests.push(`${request.method} ${request.url}`)
    this.headers.push(request.headers)
    if (this.#options.before?.(request, response, body) === true) return
    const url = new URL(request.url ?? '', 'http://fake')
    const [, , id = '', verb = ''] = url.pathname.split('/').map(decodeURIComponent)
    const task = this.tasks.get(id)
    if (id === '') return this.#submit(isObject(body) ? body : {}, response)
    if (verb === 'events') return this.#events(task, url.searchParams.get('from_seq'), request, response)
    if (task === undefined) return this.#unknown(verb, id, response)
    switch (verb) {
      case '': return json(response, 200, this.#snapshot(task))
      case 'wait': return json(response, 200, { ...this.#snapshot(task), ...task.status === 'success' && { result: task.result } })
      case 'cancel': return this.#cancel(task, response)
      case 'resume': return this.#resume(task, body, response)
      default: return json(response, 404, { error: 'not found' })
    }
  }

  #unknown (verb: string, id: string, response: ServerResponse): void {
    if (this.#isReference && verb === 'cancel') return json(response, 200, undefined)
    if (this.#isReference && verb === 'resume') return json(response, 409, { error: `task is not awaiting confirmation: ${id}` })
    json(response, this.#isReference ? 200 : 404, { task_id: id, status: 'error', error: 'task not found', ...!this.#isReference && { code: 'task_not_found' } })
  }

  #snapshot (task: FakeTask): Record<string, unknown> {
    const status = task.isAwaiting ? 'awaiting_confirm' : task.status
    return {
      task_id: task.id,
      status,
      ...task.error !== undefined && { error: task.error },
      ...task.isAwaiting && {
        pending_confirms: task.pending.flatMap((item) => item.kind === 'confirm' ? [pendingConfirm(item.toolCall)] : []),
        ...!this.#isReference && { pending_inputs: task.pending.flatMap((item) => item.kind === 'input' ? [item.request] : []) }
      },
      ...!this.#isReference && { last_seq: task.lastSeq, ...task.status === 'success' && { result: task.result } }
    }
  }

  #submit (body: Record<string, unknown>, response: ServerResponse): void {
    const id = String(body.task_id)
    const known = this.tasks.get(id)
    if (known?.isOver) return json(response, 409, { error: `task_id already finished: ${id}`, ...!this.#isReference && { code: 'task_finished', status: known.status, same_request: true } })
    if (known !== undefined && !(this.#isReference && known.isAwaiting)) {
      return json(response, 200, { task_id: id, status: 'pending', ...!this.#isReference && { duplicate: true } })
    }
    const task = new FakeTask(id, body)
    this.tasks.set(id, task)
    json(response, 200, { task_id: id, status: 'pending' })
    this.#run(task, undefined).catch(() => {})
  }

  #cancel (task: FakeTask, response: ServerResponse): void {
    if (!task.isOver) {
      task.status = 'cancelled'
      task.isAwaiting = false
      task.abort.abort(new RunInterrupted('user'))
      if (!this.#isReference) this.#publish(task, { type: 'STATUS', taskId: task.id, status: 'cancelled' })
      this.#complete(task)
    }
    json(response, 200, this.#isReference ? undefined : { task_id: task.id, status: task.status, cancel_requested: true })
  }

  #resume (task: FakeTask, body: unknown, response: ServerResponse): void {
    if (task.isBusy) {
      setImmediate(() => { task.isBusy = false })
      return json(response, 409, { error: `task is already running: ${task.id}` })
    }
    if (!task.isAwaiting) return json(response, 409, { error: `task is not awaiting confirmation: ${task.id}`, ...!this.#isReference && { code: 'not_awaiting' } })
    this.resumes.push(body)
    const { decisions = [], inputs = [] } = body as { decisions?: Record<string, unknown>[], inputs?: Record<string, unknown>[] }
    const resolved = resolveDecisions(task.pending, [
      ...decisions.map((decision) => ({ ...decision, kind: 'confirm' })), ...inputs.map((input) => ({ ...input, kind: 'input' }))
    ], { onMissing: 'deny', onUnknown: 'ignore', onDuplicate: 'last' })
    if (resolved.kind === 'rejected') return json(response, 400, { error: resolved.problems[0]?.message, code: 'invalid_decision' })
    task.isAwaiting = false
    json(response, 200, { task_id: task.id, status: 'running' })
    this.#run(task, resolved.decisions).catch(() => {})
  }

  async #run (task: FakeTask, decisions: readonly Decision[] | undefined): Promise<void> {
    task.runs++
    if (this.#options.isSlow === true && task.listeners === 0) await once(task.changed, 'listen')
    const { context = {}, input } = task.submission as { context?: Record<string, unknown>, input?: unknown }
    const messages: Msg[] = [{ id: `${task.id}-u`, role: 'USER', content: [{ type: 'text', text: String(input ?? '') }] }]
    const runtime = createRuntimeContext({
      sessionId: task.id,
      runId: task.id,
      protocol: 'agent-protocol',
      signal: task.abort.signal,
      ...typeof context.user_id === 'string' && { userId: context.user_id },
      denyRules: Array.isArray(context.deny_rules) ? context.deny_rules.map((rule: Record<string, unknown>) => ({ ...rule, behavior: 'deny' })) as never : []
    })
    const held: AgentEvent[] = []
    let asked: Pending[] = []
    let last: Msg | undefined
    try {
      for await (const event of runAgent(this.#agent, decisions === undefined ? { messages, history: 'append' } : { messages: [], history: 'append', resume: [...decisions] }, runtime)) {
        if (task.isOver) return
        const pending = event.source === undefined ? pendingIn(event) : []
        asked = [...asked, ...pending]
        if (event.type === 'AGENT_RESULT' && event.source === undefined) last = event.result
        if (asked.length > 0 && !this.#isReference) held.push(event)
        else this.#tell(task, event)
      }
    } catch (error) {
      if (task.isOver) return
      task.status = 'error'
      task.error = error instanceof Error ? error.message : 'error'
      this.#publish(task, { type: 'RUN_ERROR', taskId: task.id, error: task.error, status: 'error' })
      return this.#complete(task)
    }
    if (task.isOver) return
    if (last?.metadata?.[MsgMetadata.generateReason] === 'PERMISSION_ASKING' || asked.length > 0) return this.#pause(task, asked, held)
    task.status = 'success'
    task.result = last === undefined ? '' : textOf(last)
    this.#publish(task, { type: 'STATUS', taskId: task.id, status: 'success', ...!this.#isReference && { result: task.result } })
    this.#complete(task)
  }

  #pause (task: FakeTask, asked: Pending[], held: readonly AgentEvent[]): void {
    task.pending = asked
    task.isAwaiting = true
    const pendingConfirms = asked.flatMap((item) => item.kind === 'confirm' ? [pendingConfirm(item.toolCall)] : [])
    if (this.#isReference) {
      task.isBusy = true
      return this.#publish(task, { type: 'REQUIRE_CONFIRM', taskId: task.id, pendingConfirms, status: 'awaiting_confirm' })
    }
    const pendingInputs = asked.flatMap((item) => item.kind === 'input' ? [item.request] : [])
    const confirms = asked.flatMap((item): ToolUseBlock[] => item.kind === 'confirm' ? [item.toolCall] : [])
    const first = held.find(({ type }) => type === 'REQUIRE_USER_CONFIRM') as AgentEventOf<'REQUIRE_USER_CONFIRM'> | undefined
    const wire = first === undefined ? { type: 'REQUIRE_CONFIRM', taskId: task.id } : encodeTaskEvent({ ...first, toolCalls: confirms }, { taskId: task.id })
    this.#publish(task, { ...wire, pendingConfirms, ...pendingInputs.length > 0 && { pendingInputs }, status: 'awaiting_confirm' })
    for (const event of held) if (pendingIn(event).length === 0 || event.source !== undefined) this.#tell(task, event)
  }

  #tell (task: FakeTask, event: AgentEvent): void {
    const { context = {} } = task.submission as { context?: Record<string, unknown> }
    const level = DETAIL_LEVELS.indexOf(readDetail(context.detail) ?? 'status')
    if (DETAIL_LEVELS.indexOf(detailOf(event.type)) > level) return
    const { payload, ...wire } = encodeTaskEvent(event, { taskId: task.id })
    this.#publish(task, this.#options.payloads === false || payload === undefined ? wire : { ...wire, payload })
  }

  #publish (task: FakeTask, event: TaskEvent): void {
    const seq = ++task.lastSeq
    const isNumbered = this.#options.numbered !== false
    task.log.push({ seq, frame: `${isNumbered ? `id: ${seq}\n` : ''}event: ${event.type}\ndata: ${JSON.stringify(isNumbered ? { seq, ...event } : event)}\n\n` })
    if (task.log.length > (this.#options.ring ?? 256)) task.log.shift()
    task.changed.emit('change')
  }

  #complete (task: FakeTask): void {
    task.isComplete = true
    task.changed.emit('change')
  }

  async #events (task: FakeTask | undefined, fromSeq: string | null, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { eventsStatus = 200, ring = 256 } = this.#options
    if (eventsStatus !== 200 || (task === undefined && !this.#isReference)) return json(response, eventsStatus === 200 ? 404 : eventsStatus, { error: 'no', code: eventsStatus === 200 ? 'task_not_found' : 'streaming_disabled' })
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    response.flushHeaders()
    // The reference: a stream of what is over, or of nothing, hangs.
    if (task === undefined || (this.#isReference && task.isComplete)) return
    let after = Number(fromSeq ?? request.headers['last-event-id'] ?? 0)
    const oldest = task.log[0]?.seq ?? task.lastSeq + 1
    if (!this.#isReference && (after < oldest - 1 || after > task.lastSeq)) {
      const reason = after > task.lastSeq ? 'ahead' : 'evicted'
      response.write(`event: STREAM_GAP\ndata: ${JSON.stringify({ type: 'STREAM_GAP', taskId: task.id, fromSeq: after, oldestSeq: oldest, lastSeq: task.lastSeq, missed: Math.max(0, oldest - 1 - after), reason })}\n\n`)
      after = oldest - 1
    }
    task.listeners++
    const closed = once(response, 'close').then(() => { task.listeners-- })
    task.changed.emit('listen')
    for (;;) {
      for (const { seq, frame } of [...task.log]) {
        if (seq <= after) continue
        response.write(frame)
        after = seq
      }
      if (after === task.lastSeq && task.isComplete) {
        response.end()
        return
      }
      if (await Promise.race([closed.then(() => true), once(task.changed, 'change').then(() => false)])) return
      if (ring < 256) await new Promise(setImmediate)
    }
  }
}

function pendingIn (event: AgentEvent): Pending[] {
  const replyId = 'replyId' in event ? event.replyId ?? '' : ''
  if (event.type === 'REQUIRE_USER_CONFIRM') return event.toolCalls.map((toolCall) => ({ kind: 'confirm', replyId, toolCall }))
  if (event.type === 'REQUIRE_INPUT') return event.requests.map((request) => ({ kind: 'input', replyId, request }))
  return []
}

function json (response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(body === undefined ? '' : JSON.stringify(body))
}
