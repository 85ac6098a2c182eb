import { once } from 'node:events'
import t from 'tap'
import { type AgentEvent, createRuntimeContext, type Decision, runTool, type RuntimeContext, type RuntimeContextInit, type Tool, type ToolOutcome } from '../../../../lib/agent/index.ts'
import { backgroundTools, type RemoteAgentOptions } from '../../../../plugins/agent-protocol/client/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { fakeTasks } from '../../../helpers/fake-tasks.ts'
import { decide, lines, remote } from '../../../helpers/remote-run.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'

const alive = setInterval(() => {}, 60_000)
t.teardown(() => { clearInterval(alive) })

interface Called { readonly outcome: ToolOutcome, readonly lines: readonly string[], readonly text: string }

async function use (tool: Tool, input: Record<string, unknown>, context: RuntimeContext, resume?: readonly Decision[]): Promise<Called> {
  const events: AgentEvent[] = []
  const running = runTool(tool, { id: tool.name, name: tool.name, input: input as never }, context, resume === undefined ? {} : { resume })
  for (;;) {
    const { done, value } = await running.next()
    if (done !== true) events.push(value as AgentEvent)
    else return { outcome: value, lines: lines(events), text: value.kind === 'done' && value.output[0]?.type === 'text' ? value.output[0].text : '' }
  }
}

const context = (init: Partial<RuntimeContextInit> = {}): RuntimeContext => createRuntimeContext({ sessionId: 's', runId: 'r', ...init })
const tools = (url: string, options: Partial<RemoteAgentOptions> = {}): readonly [Tool, Tool, Tool] => backgroundTools(remote(url, options))
const idIn = ({ text }: Called): string => (JSON.parse(text) as { task_id: string }).task_id

t.test('a task is started, the parent goes on, and the result is there when it is asked for', async (t) => {
  const child = new ScriptedAgent()
  const { url, task } = await fakeTasks(t, child)
  const [start, result] = tools(url)
  t.strictSame([start.name, result.name], ['worker_start', 'worker_result'])
  const started = await use(start, { prompt: 'Dig' }, context())
  t.strictSame(JSON.parse(started.text), { task_id: task().id, status: 'running' })
  const execution = await child.called()
  const early = await use(result, { task_id: task().id, wait_seconds: 0 }, context())
  t.equal(early.text, `The task ${task().id} is still running.`)
  t.equal(task().status, 'running', 'waiting for it is not what it depends on')
  const waiting = use(result, { task_id: task().id }, context({ runId: 'r2' }))
  await execution.text('Found it')
  execution.finish()
  const done = await waiting
  t.equal(done.text, 'Found it')
  t.ok(done.lines.includes('worker TEXT_BLOCK_DELTA Found it'))
  const again = await use(result, { task_id: task().id }, context())
  t.equal(again.text, 'Found it')
  t.notOk(again.lines.includes('worker TEXT_BLOCK_DELTA Found it'), 'its events are not told again')
})

t.test('a question of a background task is asked by who waits for it, and its answer goes on', async (t) => {
  const tool = noted('remove')
  const { url, task } = await fakeTasks(t, approving([tool]))
  const [start, result] = tools(url)
  const id = idIn(await use(start, { prompt: 'remove {"file":"a"}' }, context()))
  const asked = await use(result, { task_id: id }, context())
  t.match(asked.outcome, { kind: 'pending', pending: [{ kind: 'confirm', toolCall: { name: 'remove' } }] })
  t.ok(task().isAwaiting)
  const pending = asked.outcome.kind === 'pending' ? asked.outcome.pending : []
  const done = await use(result, { task_id: id }, context({ runId: 'r2' }), decide(pending, true))
  t.equal(done.text, 'Done.')
  t.strictSame(tool.ran, [{ file: 'a' }])
})

t.test('the ask policy answers also while nobody waits (D20)', async (t) => {
  const tool = noted('remove')
  const { url, task } = await fakeTasks(t, approving([tool]))
  const [start, result] = tools(url, { askPolicy: 'deny' })
  const id = idIn(await use(start, { prompt: 'remove {"file":"a"}' }, context()))
  while (!task().isOver) await once(task().changed, 'change')
  t.strictSame(tool.ran, [])
  t.equal((await use(result, { task_id: id }, context())).text, 'Done.')
})

t.test('a session names its own tasks alone, and cancels them', async (t) => {
  const child = new ScriptedAgent()
  const { url, task, requests } = await fakeTasks(t, child)
  const [start, result, cancel] = tools(url)
  const id = idIn(await use(start, { prompt: 'Dig' }, context({ userId: 'u' })))
  const count = requests.length
  for (const init of [{ userId: 'v' }, { userId: 'u', sessionId: 'other' }, {}]) {
    for (const tool of [result, cancel]) t.match(await use(tool, { task_id: id }, context(init)), { outcome: { state: 'error' }, text: /There is no task/ })
  }
  t.equal(requests.length, count, 'the service is not even asked')
  await use(cancel, { task_id: id }, context({ userId: 'u' }))
  t.equal(task().status, 'cancelled')
  t.match(await use(result, { task_id: id }, context({ userId: 'u' })), { outcome: { state: 'error' }, text: /cancelled/ })
})

t.test('an abort ends the waiting and not the task; the server\'s end ends what looks after it', async (t) => {
  const child = new ScriptedAgent()
  const { url, task } = await fakeTasks(t, child)
  const [start, result] = tools(url)
  const controller = new AbortController()
  const id = idIn(await use(start, { prompt: 'Dig' }, context()))
  const execution = await child.called()
  const waiting = use(result, { task_id: id }, context({ signal: controller.signal }))
  await execution.text('so far')
  controller.abort(new Error('left'))
  await t.rejects(waiting, { message: 'left' })
  t.equal(task().status, 'running')
  const closing = new AbortController()
  const [startHere] = backgroundTools(remote(url, { askPolicy: 'deny' }), { name: 'far', signal: closing.signal })
  await use(startHere, { prompt: 'Dig deeper' }, context({ runId: 'q' }))
  closing.abort()
  execution.finish()
  ;(await child.called()).finish()
})

t.test('with cancelOnParentEnd a task is cancelled with the run that has started it', async (t) => {
  for (const cancelOnParentEnd of [false, true]) {
    const child = new ScriptedAgent()
    const { url, task } = await fakeTasks(t, child)
    const [start] = backgroundTools(remote(url), { cancelOnParentEnd })
    const run = new AbortController()
    await use(start, { prompt: 'Dig' }, context({ signal: run.signal }))
    const execution = await child.called()
    run.abort(new Error('stopped'))
    if (cancelOnParentEnd) while (task().status !== 'cancelled') await once(task().changed, 'change')
    else execution.finish()
    while (!task().isOver) await once(task().changed, 'change')
    t.equal(task().status, cancelOnParentEnd ? 'cancelled' : 'success')
  }
})

t.test('a handle tells a task to its end, one reader at a time', async (t) => {
  const child = new ScriptedAgent()
  const { url } = await fakeTasks(t, child)
  const task = await remote(url).submit({ input: 'Dig', context: context() })
  const kinds: string[] = []
  const reading = (async () => { for await (const update of task.events()) kinds.push(update.kind) })()
  const execution = await child.called()
  await t.rejects(task.result(), { code: 'already_followed' })
  await execution.text('x')
  execution.finish()
  await reading
  t.strictSame(kinds, ['event', 'event', 'event', 'event', 'event', 'event', 'end'])
  t.match(await task.result(), { kind: 'end', status: 'success', result: 'x' })
  t.match(await task.snapshot(), { status: 'success', result: 'x', lastSeq: task.lastSeq })
  t.equal(await task.resume([{ kind: 'confirm', toolCallId: 'c', approved: true }]), false)
  await t.rejects(remote(url).attach('nobody').snapshot(), { code: 'task_not_found' })
  const late = remote(url).attach(task.id, { lastSeq: 5 })
  const rest: string[] = []
  for await (const update of late.events()) rest.push(update.kind)
  t.strictSame(rest, ['event', 'end'])
})
