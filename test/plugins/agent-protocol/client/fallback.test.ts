import t from 'tap'
import { type Agent, textOf } from '../../../../lib/agent/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { fakeTasks } from '../../../helpers/fake-tasks.ts'
import { decide, lines, remote, run, watch } from '../../../helpers/remote-run.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'

const hello: Agent = {
  name: 'hello',
  async * stream () {
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'Hello' }
    yield { type: 'TEXT_BLOCK_DELTA', delta: ' there' }
  }
}

for (const like of ['own', 'reference'] as const) {
  for (const eventsStatus of [404, 405, 500]) {
    t.test(`without streams (${eventsStatus}) the result is polled for, and questions are found and answered (${like})`, async (t) => {
      const { url, requests } = await fakeTasks(t, hello, { like, eventsStatus })
      const { events, message, code } = await run(remote(url, { maxAttempts: 3 }), 'Hi')
      t.equal(code, undefined)
      t.equal(textOf(message), 'Hello there')
      t.ok(lines(events).includes('TEXT_BLOCK_DELTA Hello there'), 'the text is told')
      if (eventsStatus !== 500) t.equal(requests.filter((request) => request.includes('/events')).length, 1)
      const tool = noted('remove')
      const asking = await fakeTasks(t, approving([tool]), { like, eventsStatus })
      const paused = await run(remote(asking.url, { maxAttempts: 3 }), 'remove {"file":"a"}')
      t.match(lines(paused.events).find((line) => line.startsWith('REQUIRE')), / remove \{"file":"a"\}$/)
      t.equal(textOf((await run(remote(asking.url, { maxAttempts: 3 }), decide(paused.pending, true))).message), 'Done.')
      t.strictSame(tool.ran, [{ file: 'a' }])
    })
  }
}

t.test('an agent told not to stream opens none and says so to the service', async (t) => {
  const { url, requests, task } = await fakeTasks(t, hello)
  const { events, message } = await run(remote(url, { stream: false }), 'Hi')
  t.equal(textOf(message), 'Hello there')
  t.strictSame(lines(events), ['AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA Hello there', 'TEXT_BLOCK_END', 'AGENT_RESULT', 'AGENT_END MODEL_STOP'])
  t.match(task().submission, { context: { stream: false, detail: 'status' } })
  t.notOk(requests.some((request) => request.includes('/events')))
})

t.test('a lower detail tells less, and the same result', async (t) => {
  for (const [detail, told] of [['status', ['Hello there']], ['full', ['Hello', ' there']]] as const) {
    const { url } = await fakeTasks(t, hello, { isSlow: true })
    const { events, message } = await run(remote(url, { detail }), 'Hi')
    t.equal(textOf(message), 'Hello there')
    t.strictSame(lines(events).filter((line) => line.startsWith('TEXT_BLOCK_DELTA')), told.map((delta) => `TEXT_BLOCK_DELTA ${delta}`))
  }
})

const deltas = (told: readonly string[]): string[] => told.filter((line) => line.startsWith('TEXT_BLOCK_DELTA') || line.startsWith('CUSTOM'))

t.test('events that the service no longer keeps are a gap, told once, and the result is whole', async (t) => {
  const agent = new ScriptedAgent()
  const { url, server } = await fakeTasks(t, agent, { ring: 6 })
  const running = watch(remote(url), 'Hi')
  const execution = await agent.called()
  await execution.text('one ')
  await running.told('TEXT_BLOCK_DELTA one ')
  // The client is away, the service goes on and forgets.
  server.closeAllConnections()
  const words = ['two ', 'three ', 'four ', 'five ', 'six ', 'seven ', 'eight ', 'nine ', 'ten']
  await execution.text(...words)
  await running.told('TEXT_BLOCK_DELTA ten')
  execution.finish()
  const { events, message, code } = await running.outcome
  t.equal(code, undefined)
  t.equal(textOf(message), `one ${words.join('')}`)
  t.strictSame(deltas(lines(events)), [
    'TEXT_BLOCK_DELTA one ', 'CUSTOM stream_gap {"reason":"evicted","missed":3}', ...words.slice(3).map((word) => `TEXT_BLOCK_DELTA ${word}`)
  ])
})

t.test('a service that begins its numbers anew is followed, and what it tells again is not told twice', async (t) => {
  const agent = new ScriptedAgent()
  const { url, server, task } = await fakeTasks(t, agent)
  const running = watch(remote(url), 'Hi')
  const execution = await agent.called()
  await execution.text('one ', 'two ')
  await running.told('TEXT_BLOCK_DELTA two ')
  // The log as it is after a restart that lost its beginning.
  const { log } = task()
  log.splice(0, 2)
  for (const [index, { frame }] of log.entries()) {
    log[index] = { seq: index + 1, frame: frame.replace(/^id: \d+/, `id: ${index + 1}`).replace(/"seq":\d+/, `"seq":${index + 1}`) }
  }
  task().lastSeq -= 2
  server.closeAllConnections()
  await running.told('CUSTOM stream_gap {"reason":"ahead"}')
  await execution.text('three')
  execution.finish()
  const { events, message } = await running.outcome
  t.equal(textOf(message), 'one two three')
  t.strictSame(deltas(lines(events)), ['TEXT_BLOCK_DELTA one ', 'TEXT_BLOCK_DELTA two ', 'CUSTOM stream_gap {"reason":"ahead"}', 'TEXT_BLOCK_DELTA three'])
})

t.test('events without numbers are told once: by their ids, and without ids by one connection alone', async (t) => {
  for (const payloads of [true, false]) {
    const agent = new ScriptedAgent()
    const { url, server, requests } = await fakeTasks(t, agent, { numbered: false, payloads })
    const running = watch(remote(url), 'Hi')
    const execution = await agent.called()
    await execution.text('one ', 'two ')
    await running.told('TEXT_BLOCK_DELTA two ')
    server.closeAllConnections()
    await (payloads ? execution.text('three') : running.told('CUSTOM stream_gap {"reason":"unnumbered"}').then(() => execution.text('three')))
    execution.finish()
    const { events, message, code } = await running.outcome
    t.equal(code, undefined)
    t.equal(textOf(message), 'one two three')
    t.strictSame(deltas(lines(events)), [
      'TEXT_BLOCK_DELTA one ', 'TEXT_BLOCK_DELTA two ', ...payloads ? [] : ['CUSTOM stream_gap {"reason":"unnumbered"}'], 'TEXT_BLOCK_DELTA three'
    ])
    t.equal(requests.filter((request) => request.includes('/events')).length > 1, payloads)
  }
})

t.test('an event that one connection has left out is fetched by the next; one that the service has lost is a gap', async (t) => {
  for (const isLost of [false, true]) {
    const agent = new ScriptedAgent()
    const { url, task, requests } = await fakeTasks(t, agent)
    const running = watch(remote(url), 'Hi')
    const execution = await agent.called()
    await execution.text('one ')
    await running.told('TEXT_BLOCK_DELTA one ')
    const { log, changed } = task()
    // Two events in one turn, of which the reader is shown the second alone.
    const silent = changed.emit
    changed.emit = () => false
    await execution.text('two ', 'three')
    changed.emit = silent
    const [left] = log.splice(log.length - 2, 1)
    changed.emit('change')
    await new Promise(setImmediate)
    if (left !== undefined && !isLost) log.splice(log.length - 1, 0, left)
    await running.told('TEXT_BLOCK_DELTA three')
    t.equal(requests.filter((request) => request.includes('/events')).length, 2)
    execution.finish()
    const { events, code, message } = await running.outcome
    t.equal(code, undefined)
    t.equal(textOf(message), 'one two three')
    t.strictSame(deltas(lines(events)), [
      'TEXT_BLOCK_DELTA one ', isLost ? 'CUSTOM stream_gap {"reason":"lost","missed":1}' : 'TEXT_BLOCK_DELTA two ', 'TEXT_BLOCK_DELTA three'
    ])
  }
})

t.test('a proxy that holds a stream back until it ends costs the time, not the events', async (t) => {
  const agent = new ScriptedAgent()
  const service: { current?: Awaited<ReturnType<typeof fakeTasks>> } = {}
  const { url } = service.current = await fakeTasks(t, agent, {
    before: (request, response) => {
      if (request.url?.includes('/events') !== true || service.current?.task().isComplete === true) return false
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      return true
    }
  })
  const running = run(remote(url, { silenceMs: 20 }), 'Hi')
  const execution = await agent.called()
  await execution.text('one ', 'two')
  execution.finish()
  const { events } = await running
  t.strictSame(lines(events), ['AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA one ', 'TEXT_BLOCK_DELTA two', 'TEXT_BLOCK_END', 'AGENT_RESULT', 'AGENT_END MODEL_STOP'])
})

t.test('streams that were of no use are tried once more when the task is over', async (t) => {
  const agent = new ScriptedAgent()
  const service: { current?: Awaited<ReturnType<typeof fakeTasks>> } = {}
  const { url, requests } = service.current = await fakeTasks(t, agent, {
    before: (request, response) => {
      if (request.url?.includes('/events') !== true || service.current?.task().isComplete === true) return false
      response.writeHead(503).end()
      return true
    }
  })
  const running = run(remote(url, { maxAttempts: 3 }), 'Hi')
  const execution = await agent.called()
  await execution.text('one ', 'two')
  const streams = (): number => requests.filter((request) => request.includes('/events')).length
  while (streams() < 3) await new Promise(setImmediate)
  const looks = requests.length
  while (requests.length < looks + 4) await new Promise(setImmediate)
  execution.finish()
  const { events } = await running
  t.strictSame(lines(events), ['AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA one ', 'TEXT_BLOCK_DELTA two', 'TEXT_BLOCK_END', 'AGENT_RESULT', 'AGENT_END MODEL_STOP'])
})
