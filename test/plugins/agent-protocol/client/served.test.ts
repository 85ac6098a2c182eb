// A remote agent served as it is: over AG-UI, and as a task of another server.
import t from 'tap'
import { type Agent, textOf } from '../../../../lib/agent/index.ts'
import { eventsOf, serveApp } from '../../../helpers/ag-ui-app.ts'
import { answer, approving, noted } from '../../../helpers/approving-agent.ts'
import { decide, lines, remote, run } from '../../../helpers/remote-run.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { serveTasks } from '../../../helpers/task-app.ts'

const url = ({ port }: { readonly port: number }): string => `http://127.0.0.1:${port}`
const user = (id: string, content: string): object => ({ id, role: 'user', content })

interface Interrupt { readonly id: string, readonly reason: string, readonly message?: string }
const open = (events: readonly object[]): readonly Interrupt[] => (events.at(-1) as { outcome?: { interrupts?: Interrupt[] } }).outcome?.interrupts ?? []
const text = (events: readonly object[]): string => events.map((event) => (event as { type: string, delta?: string })).filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta).join('')

t.test('a page talks to a remote agent, is asked by it, and edits what it is asked about', async (t) => {
  const tool = noted('remove')
  const far = await serveTasks(t, { agent: approving([tool]) })
  const near = await serveApp(t, { agent: remote(url(far)) })
  const hello = await eventsOf(await near.run({ messages: [user('u1', 'Hello')] }))
  t.equal(text(hello), 'Tools: remove')
  // The page sends the whole conversation; the newest words are the task.
  const conversation = [user('u1', 'Hello'), { id: 'a1', role: 'assistant', content: 'Tools: remove' }, user('u2', 'remove {"file":"a"}')]
  const asked = await eventsOf(await near.run({ runId: 'two', messages: conversation }))
  const [interrupt, ...others] = open(asked)
  t.match(interrupt, { reason: 'tool_call', metadata: { toolName: 'remove', toolInput: { file: 'a' } } })
  t.strictSame(others, [])
  const done = await eventsOf(await near.run({ runId: 'three', messages: conversation, resume: [answer(interrupt?.id ?? '', { approved: true, editedArgs: { file: 'b' } })] }))
  t.equal(text(done), 'Done.')
  t.strictSame(tool.ran, [{ file: 'b' }])
})

t.test('a text that a remote agent needs is asked for on the page', async (t) => {
  const asker: Agent = {
    name: 'asker',
    capabilities: { resume: true },
    async * stream (input) {
      const [given] = input.resume ?? []
      if (given?.kind === 'input') yield { type: 'TEXT_BLOCK_DELTA', delta: `Hello ${JSON.stringify(given.payload)}` }
      else yield { type: 'REQUIRE_INPUT', requests: [{ id: 'who', reason: 'input_required', message: 'Who are you?' }] }
    }
  }
  const far = await serveTasks(t, { agent: asker })
  const near = await serveApp(t, { agent: remote(url(far)) })
  const [interrupt] = open(await eventsOf(await near.run()))
  t.match(interrupt, { message: 'Who are you?' })
  const done = await eventsOf(await near.run({ runId: 'two', resume: [answer(interrupt?.id ?? '', 'Ada')] }))
  t.equal(text(done), 'Hello "Ada"')
})

t.test('a page that stops its run stops the remote agent', async (t) => {
  const agent = new ScriptedAgent()
  const far = await serveTasks(t, { agent })
  const near = await serveApp(t, { agent: remote(url(far)) })
  const client = await near.run()
  const execution = await agent.called()
  await execution.text('Hel')
  await client.until(({ data }) => data?.includes('Hel') === true)
  await near.stop('thread')
  await execution.returned
  t.ok(execution.context.signal.aborted)
  await client.rest()
})

t.test('a task may be a remote one: questions go through both servers, and both tasks end', async (t) => {
  const tool = noted('remove')
  const far = await serveTasks(t, { agent: approving([tool]) })
  const middle = await serveTasks(t, { agent: remote(url(far)) })
  const paused = await run(remote(url(middle)), 'remove {"file":"a"}')
  t.match(paused.pending, [{ kind: 'confirm', toolCall: { name: 'remove', input: { file: 'a' } } }])
  const resumed = await run(remote(url(middle)), decide(paused.pending, false, { reason: 'Not now.' }))
  t.equal(textOf(resumed.message), 'Done.')
  t.ok(lines(resumed.events).some((line) => line.startsWith('TOOL_RESULT_TEXT_DELTA Not now.')))
  t.strictSame(tool.ran, [])
  for (const { store } of [middle, far]) {
    t.strictSame((await store.index.list({}, { protocol: 'agent-protocol', limit: 10 })).runs.length, 1)
  }
})
