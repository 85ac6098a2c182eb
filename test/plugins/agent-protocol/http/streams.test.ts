// What becomes of streams that last long, of readers that take nothing, and of those that come back.
import t from 'tap'
import { agentOf, turn } from '../../../helpers/run-engine.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { type ReceivedFrame } from '../../../helpers/sse-client.ts'
import { serveTasks, taskEvents } from '../../../helpers/task-app.ts'

t.setTimeout(60_000)

t.test('a stream that has lasted long enough ends with its cursor, and is gone on with from there', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent, sseTimeoutMs: 1_000, heartbeatMs: 1_000 })
  await app.submit('t1', { context: { detail: 'full' } })
  const stream = await app.events('t1')
  const execution = await agent.called()
  await execution.text('a')
  const frames = await stream.rest()
  t.match(frames.at(-1), { comments: ['timeout'], id: '2', data: undefined })
  t.equal(await stream.closed, 'ended')
  t.equal(execution.context.signal.aborted, false, 'the task goes on')
  await execution.text('b')
  execution.finish()
  const rest = taskEvents(await (await app.events('t1', '', { 'last-event-id': '2' })).rest())
  t.strictSame(rest.map(({ seq, type }) => [seq, type]), [[3, 'TEXT_DELTA'], [4, 'RUN_FINISHED'], [5, 'STATUS']])
})

t.test('a silent stream has heartbeats', async (t) => {
  const app = await serveTasks(t, { agent: new ScriptedAgent(), heartbeatMs: 1_000 })
  await app.submit('t1')
  const stream = await app.events('t1')
  const frames = await stream.until(({ comments }) => comments.includes('ping') || (comments.length > 0 && !comments.includes('ok')))
  t.equal(frames.at(-1)?.data, undefined)
  t.notOk(frames.at(-1)?.raw.includes('id:'), 'and they say nothing of where it is')
  await stream.destroy()
})

t.test('a reader that takes nothing is cut with a cursor, costs the task nothing, and comes back to what is kept', async (t) => {
  const EVENTS = 200
  const big = 'x'.repeat(128 * 1024)
  const agent = agentOf(async function * () {
    for (let index = 0; index < EVENTS; index++) {
      yield { type: 'TEXT_BLOCK_DELTA', delta: big }
      await turn()
    }
  })
  const app = await serveTasks(t, { agent, replay: { maxEvents: 64, maxBytes: 4 * 1024 * 1024 } })
  await app.submit('t1', { context: { detail: 'full', payload: false } })
  const stalled = await app.events('t1')
  t.match((await app.settled('t1')).body, { status: 'success' }, 'nobody waits for it')
  const frames = await stalled.rest()
  const cut = frames.at(-1)
  t.strictSame(cut?.comments, ['overflow'])
  const told = numbers(frames)
  t.strictSame(told, told.map((_, index) => index + 1), 'what it was told is whole as far as it goes')
  t.equal(Number(cut?.id), told.length, 'and it is told where it stands')
  const back = await (await app.events('t1', `from_seq=${told.length}`)).rest()
  const events = taskEvents(back)
  let last = told.length
  for (const event of events) {
    const { seq = 0, type, oldestSeq = 0 } = event
    // Frames of its own take room too, so that more may go while it reads.
    if (type === 'STREAM_GAP') t.match(event, { reason: 'evicted', fromSeq: last, missed: oldestSeq - 1 - last })
    else t.equal(seq, last + 1)
    last = type === 'STREAM_GAP' ? oldestSeq - 1 : seq
  }
  t.equal(last, EVENTS + 3, 'to the end, and what is missing is told each time')
  t.match(events.at(-1), { type: 'STATUS', status: 'success', result: undefined }, 'a result that large is not told in an event')
  t.equal(((await app.ask('GET', '/tasks/t1/wait')).body.result as string).length, EVENTS * big.length, 'it is there for who asks')
})

t.test('of three hundred events with a buffer of 256, a reader that comes back at 1 is told what is gone', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  await app.submit('t1', { context: { detail: 'full' } })
  const execution = await agent.called()
  await execution.text(...Array.from({ length: 297 }, () => 'x')) // with start, end and status: 300
  execution.finish()
  await app.settled('t1')
  const [gap, ...rest] = taskEvents(await (await app.events('t1', 'from_seq=1')).rest())
  t.match(gap, { type: 'STREAM_GAP', reason: 'evicted', fromSeq: 1, lastSeq: 300 })
  const oldest = Number(gap?.oldestSeq)
  t.ok(oldest > 2 && 300 - oldest < 256 + 16, `from ${oldest} on`)
  t.strictSame(rest.map(({ seq }) => seq), Array.from({ length: 300 - oldest + 1 }, (_, index) => oldest + index))
})

function numbers (frames: readonly ReceivedFrame[]): number[] {
  return frames.flatMap(({ data, id }) => data === undefined ? [] : [Number(id)])
}
