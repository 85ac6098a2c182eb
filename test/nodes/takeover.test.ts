import t from 'tap'
import { connect } from '../helpers/sse-client.ts'
import { eventsIn, nodesTests, numbersOf, range, restOf, saidIn, type SeenEvent, untilSaid } from './nodes.ts'

const test = nodesTests(t)

test('a run whose node is killed ends on the other one, which tells its readers', async (t, { a, b }) => {
  const own = await a.run('killed', 'count 10000 20')
  const told = await untilSaid(own, '5 ')
  const there = await b.join('killed')
  const before = await untilSaid(there, '5 ')
  await a.kill()
  const after = await restOf(there)
  const seen = [...before, ...after]
  t.match(seen.at(-1), { type: 'RUN_ERROR', code: 'NODE_LOST' })
  t.same(numbersOf(seen), range(1, seen.length))
  t.same(seen.slice(0, told.length), told, 'nothing of what the caller was told is missing')
  t.equal(`${range(1, 10_000).join(' ')} `.startsWith(saidIn(seen)), true)
  const again = await restOf(await b.join('killed', seen[5]?.id))
  t.same(again, seen.slice(6), 'a cursor of the first owner is good for the rest')
})

test('the thread of a killed node is free again', async (t, { a, b }) => {
  const own = await a.run('freed', 'count 10000 20')
  await untilSaid(own, '2 ')
  const there = await b.join('freed')
  await a.kill()
  t.match((await restOf(there)).at(-1), { type: 'RUN_ERROR' })
  const next = await restOf(await b.run('freed', 'count 3 1', { runId: 'second' }))
  t.match(next.at(-1), { type: 'RUN_FINISHED' })
  t.equal(saidIn(next), '1 2 3 ')
})

test('a task of a killed node is begun again on the other one if its agent may be, and is lost if not', async (t, { a, b }) => {
  const submit = (task: string, agent: string) => a.ask('POST', '/tasks', { task_id: task, agent_id: agent, input: 'count 100 20', context: { detail: 'full' } })
  t.match(await submit('again', 'tireless'), { status: 200 })
  t.match(await submit('lost', 'worker'), { status: 200 })
  const streams = await Promise.all(['again', 'lost'].map((id) => connect('GET', `/tasks/${id}/events`, { port: b.port })))
  for (const stream of streams) await untilSaid(stream, '10 ')
  await a.kill()
  const [again, lost] = await Promise.all(streams.map(async (stream) => await restOf(stream))) as [SeenEvent[], SeenEvent[]]
  t.match(again.at(-1), { type: 'STATUS', status: 'success' })
  t.match(lost.at(-1), { type: 'RUN_ERROR' })
  t.ok(saidIn(again).endsWith(`${range(1, 100).join(' ')} `), 'from the beginning')
  t.same(numbersOf(again), range(numbersOf(again)[0] ?? 0, again.length), 'in the same log')
  t.match(await b.ask('GET', '/tasks/again'), { body: { status: 'success', result: `${range(1, 100).join(' ')} ` } })
  t.match(await b.ask('GET', '/tasks/lost'), { body: { status: 'error' } })
})

test('a node that was stopped past its lease and wakes up appends nothing, and tells its own caller nothing', async (t, { a, b }) => {
  const own = await a.run('paused', 'count 10000 20')
  const told = await untilSaid(own, '5 ')
  const there = await b.join('paused')
  a.signal('SIGSTOP')
  const seen = await restOf(there)
  t.match(seen.at(-1), { type: 'RUN_ERROR', code: 'NODE_LOST' })
  a.signal('SIGCONT')
  // What was written before it was stopped is still on its way; then the stream ends without more.
  const rest = await restOf(own)
  const whole = [...told, ...rest]
  t.same(whole, seen.slice(0, whole.length), 'what the caller was told is what is stored')
  t.notMatch(whole.at(-1), { type: /RUN_/ }, 'no end was told')
  t.same(await restOf(await b.join('paused', told.at(-1)?.id)), seen.slice(told.length), 'the log is as it was')
  t.same(await restOf(await a.join('paused', told.at(-1)?.id)), seen.slice(told.length), 'also where it was made')
})

test('a node that wakes up within its lease goes on', async (t, { a, b }) => {
  const own = await a.run('dozed', 'count 30 20')
  const told = await untilSaid(own, '5 ')
  const there = await b.join('dozed')
  const first = eventsIn([await there.next()])
  a.signal('SIGSTOP')
  t.match(await b.ask('GET', '/tasks'), { status: 200 })
  a.signal('SIGCONT')
  const whole = [...told, ...await restOf(own)]
  t.equal(saidIn(whole), `${range(1, 30).join(' ')} `)
  t.match(whole.at(-1), { type: 'RUN_FINISHED' })
  t.same([...first, ...await restOf(there)], whole)
}, { leaseMs: 10_000 })
