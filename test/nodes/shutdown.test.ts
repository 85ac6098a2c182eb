import t from 'tap'
import { connect } from '../helpers/sse-client.ts'
import { nodesTests, numbersOf, range, restOf, saidIn, untilSaid } from './nodes.ts'

const test = nodesTests(t)

test('a server that closes interrupts its runs, and a client that comes to another one has the whole stream', async (t, { a, b }) => {
  const own = await a.run('rolled', 'count 10000 20')
  const told = await untilSaid(own, '5 ')
  const closed = a.terminate()
  const whole = [...told, ...await restOf(own)]
  t.match(whole.at(-1), { type: /RUN_(FINISHED|ERROR)/ })
  t.equal(await closed, 'closed')
  const again = await restOf(await b.join('rolled', told.at(-1)?.id))
  t.same([...told, ...again], whole)
})

test('a server that lets its runs finish sends readers away with a cursor, and another one goes on from there', async (t, { a, b }) => {
  const own = await a.run('finished', 'count 100 20')
  const told = await untilSaid(own, '5 ')
  const there = await b.join('finished')
  const closed = a.terminate()
  const mine = [...told, ...await restOf(own)]
  const rest = mine.at(-1)?.type === 'RUN_FINISHED' ? [] : await restOf(await b.join('finished', mine.at(-1)?.id))
  const whole = [...mine, ...rest]
  t.match(whole.at(-1), { type: 'RUN_FINISHED' })
  t.equal(saidIn(whole), `${range(1, 100).join(' ')} `)
  t.same(numbersOf(whole), range(1, whole.length))
  t.same(await restOf(there), whole)
  t.equal(await closed, 'closed')
}, { onShutdown: 'finish', shutdownMs: 10_000 })

test('in a rolling restart a client that goes from server to server misses and repeats nothing', async (t, { a, b, another }) => {
  const own = await b.run('rolling', 'count 300 20')
  const seen = await untilSaid(own, '5 ')
  await own.destroy()
  const visit = async (node: typeof a): Promise<void> => {
    const stream = await node.join('rolling', seen.at(-1)?.id)
    const leaving = untilSaid(stream, `${seen.length + 10} `)
    seen.push(...await leaving)
    const closed = node.terminate()
    seen.push(...await restOf(stream))
    t.equal(await closed, 'closed')
  }
  await visit(a)
  const c = await another()
  await visit(c)
  const d = await another()
  seen.push(...await restOf(await d.join('rolling', seen.at(-1)?.id)))
  t.match(seen.at(-1), { type: 'RUN_FINISHED' })
  t.equal(saidIn(seen), `${range(1, 300).join(' ')} `)
  t.same(numbersOf(seen), range(1, seen.length))
})

test('a server that hands its tasks over is followed by another one, in the same stream', async (t, { a, b }) => {
  t.match(await a.ask('POST', '/tasks', { task_id: 'handed', agent_id: 'tireless', input: 'count 50 20', context: { detail: 'full' } }), { status: 200 })
  const stream = await connect('GET', '/tasks/handed/events', { port: a.port })
  const told = await untilSaid(stream, '10 ')
  const closed = a.terminate()
  const seen = [...told, ...await restOf(stream)]
  t.notMatch(seen.at(-1), { type: /STATUS|RUN_ERROR/ }, 'it has not ended')
  t.equal(await closed, 'closed')
  const rest = await restOf(await connect('GET', '/tasks/handed/events', { port: b.port, headers: { 'last-event-id': `${seen.at(-1)?.id}` } }))
  const whole = [...seen, ...rest]
  t.same(numbersOf(whole), range(1, whole.length))
  t.match(whole.at(-1), { type: 'STATUS', status: 'success' })
  t.ok(saidIn(whole).endsWith(`${range(1, 50).join(' ')} `))
}, { onShutdown: 'hand-over' })
