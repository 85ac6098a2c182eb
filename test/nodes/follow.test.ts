import t from 'tap'
import { eventsIn, LEASE_MS, numbersOf, range, restOf, saidIn, nodesTests, untilSaid } from './nodes.ts'

const test = nodesTests(t)

test('a run is read on another node as it is told on its own, live and afterwards', async (t, { a, b }) => {
  const own = await a.run('follow', 'count 20 20')
  const first = await untilSaid(own, '3 ')
  const there = await b.join('follow')
  const [rest, seen] = await Promise.all([restOf(own), restOf(there)])
  const whole = [...first, ...rest]
  t.equal(saidIn(whole), `${range(1, 20).join(' ')} `)
  t.equal(whole.at(-1)?.type, 'RUN_FINISHED')
  t.same(numbersOf(whole), range(1, whole.length))
  t.same(seen, whole)
  const middle = whole[9]
  t.same(await restOf(await b.join('follow', middle?.id)), whole.slice(10), 'afterwards from a cursor')
})

test('twenty clients that lose their connection at random on two nodes miss and repeat nothing', async (t, { a, b }) => {
  const own = await a.run('roam', 'count 100 20')
  await own.next()
  const clients = Array.from({ length: 20 }, async (_, index) => {
    const seen = []
    for (let visit = 0; seen.at(-1)?.type !== 'RUN_FINISHED'; visit++) {
      const node = (index + visit) % 2 === 0 ? a : b
      const stream = await node.join('roam', seen.at(-1)?.id)
      // Up to 31 frames a visit, then as a lost connection.
      for (let left = 1 + Math.floor(Math.random() * 31); left > 0; left--) {
        const { value, done } = await stream.frames.next()
        if (done === true) break
        seen.push(...eventsIn([value]))
      }
      await stream.destroy()
    }
    return seen
  })
  const whole = await restOf(own)
  for (const seen of await Promise.all(clients)) {
    t.same(numbersOf(seen), range(1, seen.length))
    t.same(seen.slice(1), whole)
  }
})

test('a run is stopped from another node, and both tell the same end', async (t, { a, b }) => {
  const own = await a.run('stop', 'count 10000 20')
  const first = await untilSaid(own, '2 ')
  const there = await b.join('stop')
  t.same(await b.ask('POST', '/agui/stop/stop'), { status: 200, body: { threadId: 'stop', stopped: true } })
  const whole = [...first, ...await restOf(own)]
  t.match(whole.at(-1), { type: 'RUN_FINISHED' })
  t.same(await restOf(there), whole)
  t.same(await b.ask('POST', '/agui/stop/stop'), { status: 200, body: { threadId: 'stop', stopped: false } }, 'there is nothing left to stop')
})

test('a task is waited for, listed and cancelled on another node', async (t, { a, b }) => {
  const submit = (id: string, input: string) => a.ask('POST', '/tasks', { task_id: id, agent_id: 'worker', input })
  t.match(await submit('t1', 'count 10 20'), { status: 200 })
  t.match(await b.ask('GET', '/tasks/t1/wait?timeout_seconds=10'), { status: 200, body: { task_id: 't1', status: 'success', result: `${range(1, 10).join(' ')} ` } })
  t.match(await submit('t2', 'count 10000 20'), { status: 200 })
  const { body } = await b.ask('GET', '/tasks')
  t.match(body, { tasks: [{ task_id: 't2', status: 'running' }, { task_id: 't1', status: 'success' }] })
  t.match(await b.ask('POST', '/tasks/t2/cancel'), { status: 200, body: { task_id: 't2', cancel_requested: true } })
  t.match(await b.ask('GET', '/tasks/t2/wait?timeout_seconds=10'), { status: 200, body: { task_id: 't2', status: 'cancelled' } })
  t.match(await a.ask('GET', '/tasks/t2'), { status: 200, body: { task_id: 't2', status: 'cancelled' } })
})

test('nobody is kept waiting by a node that stands still', async (t, { a, b }) => {
  const own = await a.run('still', 'count 10000 20')
  await untilSaid(own, '2 ')
  a.signal('SIGSTOP')
  const asked = performance.now()
  const answer = await b.ask('POST', '/agui/stop/still')
  a.signal('SIGCONT')
  t.match(answer, { status: 200, body: { threadId: 'still', stopped: true } })
  t.ok(performance.now() - asked < 20 * LEASE_MS, 'the lease decides, not the node')
})
