// The node that executes a remote agent's task is gone, and another one begins the task again.
import t from 'tap'
import { createRuntimeContext, textOf } from '../../../../lib/agent/index.ts'
import { memoryPlace } from '../../../helpers/open-stores.ts'
import { lines, remote, watch } from '../../../helpers/remote-run.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { serveTasks } from '../../../helpers/task-app.ts'

const host = { leaseMs: 1_000, storeTimeoutMs: 500, shutdownMs: 100 }

t.test('a run whose task is begun again by another node has one start, one end, and the result of what was done last', async (t) => {
  const place = memoryPlace()
  const agent = new ScriptedAgent({ restartable: true })
  const [first, second] = [await place.open(), await place.open()]
  t.teardown(() => place.remove())
  const a = await serveTasks(t, { agent, store: first, host })
  const b = await serveTasks(t, { agent, store: second, host })
  const context = createRuntimeContext({ sessionId: 's', runId: 'r' })
  // As a balancer has it: submitted here, followed there.
  await remote(`http://127.0.0.1:${a.port}`).submit({ input: 'Count', context })
  const running = watch(remote(`http://127.0.0.1:${b.port}`), 'Count', context)
  const begun = await agent.called()
  await begun.text('one ', 'two ')
  await running.told('TEXT_BLOCK_DELTA two ')
  await first.cut()
  await place.advance(2_000)
  const again = await agent.called()
  await again.text('one ', 'two ', 'three')
  again.finish()
  const { events, message, code } = await running.outcome
  t.equal(code, undefined)
  t.equal(textOf(message), 'one two three')
  const told = lines(events)
  t.strictSame(told.filter((line) => line.startsWith('AGENT_')), ['AGENT_START', 'AGENT_RESULT', 'AGENT_END MODEL_STOP'])
  t.equal(told.filter((line) => line === 'TEXT_BLOCK_DELTA one ').length, 2, 'what is said again is told again, as it is over there')
  t.equal(new Set(events.map(({ id }) => id)).size, events.length, 'and each event once')
})
