import t from 'tap'
import { restOf, type SeenEvent, type ServerNode, nodesTests } from './nodes.ts'

const test = nodesTests(t)

/** What a run that asked for an approval waits for. */
function interruptOf (events: readonly SeenEvent[]): string {
  const outcome = events.at(-1)?.['outcome'] as { readonly interrupts: readonly [{ readonly id: string }] }
  return outcome.interrupts[0].id
}

const answerOf = (interruptId: string) => [{ interruptId, status: 'resolved', payload: { approved: true } }]

/** The end of the answer, and what its tool said. */
async function answer (node: ServerNode, thread: string, runId: string, interruptId: string): Promise<readonly SeenEvent[]> {
  return await restOf(await node.run(thread, 'write {"text":"hello"}', { runId, resume: answerOf(interruptId) }))
}

test('an approval is given on another node, and the tool runs there', async (t, { a, b, journal }) => {
  const interrupt = interruptOf(await restOf(await a.run('move', 'write {"text":"hello"}')))
  t.equal(interruptOf(await restOf(await b.join('move'))), interrupt, 'it is asked there, too')
  const done = await answer(b, 'move', 'r2', interrupt)
  t.match(done.at(-1), { type: 'RUN_FINISHED' })
  t.same(await journal(), ['hello'])
  t.notMatch((await restOf(await a.join('move'))).at(-1), { outcome: { type: 'interrupt' } }, 'and is asked no more where it came from')
})

test('an approval survives the node that asked', async (t, { a, b, journal }) => {
  const interrupt = interruptOf(await restOf(await a.run('orphan', 'write {"text":"hello"}')))
  await a.kill()
  const done = await answer(b, 'orphan', 'r2', interrupt)
  t.match(done.at(-1), { type: 'RUN_FINISHED' })
  t.same(await journal(), ['hello'])
})

test('an approval that is given at the same moment on two nodes runs its tool once', async (t, { a, b, journal }) => {
  for (let round = 0; round < 10; round++) {
    const thread = `twice-${round}`
    const interrupt = interruptOf(await restOf(await a.run(thread, `write {"text":"${thread}"}`)))
    const told = await Promise.all([a, b].map((node, index) => answer(node, thread, `r${index}`, interrupt)))
    const ends = told.map((events) => events.at(-1)?.type).sort()
    t.ok(ends.includes('RUN_FINISHED'), `one of them went on: ${ends.join()}`)
    t.same((await journal()).filter((line) => line === thread), [thread])
  }
})

test('the same answer that is sent again to another node shows what came of it', async (t, { a, b, journal }) => {
  const interrupt = interruptOf(await restOf(await a.run('again', 'write {"text":"hello"}')))
  const first = await answer(a, 'again', 'r2', interrupt)
  const second = await answer(b, 'again', 'r2', interrupt)
  t.same(second, first)
  t.same(await journal(), ['hello'])
})

test('a task that waits for a confirmation is resumed on another node, once', async (t, { a, b, journal }) => {
  t.match(await a.ask('POST', '/tasks', { task_id: 't', agent_id: 'worker', input: 'write {"text":"task"}' }), { status: 200 })
  const { body } = await b.ask('GET', '/tasks/t/wait?timeout_seconds=10')
  t.match(body, { status: 'awaiting_confirm' })
  const { pending_confirms: [pending] } = body as { readonly pending_confirms: readonly [{ readonly toolCallId: string }] }
  const decision = { decisions: [{ toolCallId: pending.toolCallId, approved: true }] }
  const answers = await Promise.all([a.ask('POST', '/tasks/t/resume', decision), b.ask('POST', '/tasks/t/resume', decision)])
  t.equal(answers.filter(({ status }) => status === 200).length >= 1, true, JSON.stringify(answers))
  t.match(await b.ask('GET', '/tasks/t/wait?timeout_seconds=10'), { body: { status: 'success' } })
  t.match(await a.ask('GET', '/tasks/t'), { body: { status: 'success' } })
  t.same(await journal(), ['task'])
})
