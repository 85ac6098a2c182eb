import t from 'tap'
import { RunEngine } from '../../../lib/runs/index.ts'
import { kindsOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

t.test('runs an agent from its start to its stored terminal', async (t) => {
  const engine = new RunEngine()
  t.teardown(() => engine.close())
  const agent = new ScriptedAgent()
  const started = await engine.start(specOf(agent))
  if (started.kind !== 'started') throw new Error(started.kind)
  const { run } = started
  t.equal(run.record.state, 'running')
  const execution = await agent.called()
  await execution.text('Hello', ' world')
  t.same(kindsOf(run), ['started', 'text', 'text'])
  execution.finish()
  const record = await run.ended
  t.equal(record.state, 'completed')
  t.same(kindsOf(run), ['started', 'text', 'text', 'text-end', 'success'])
  t.equal(run.topic.stored, run.topic.last)
  t.equal((await engine.find({}, 'ledger', 'r1'))?.record.state, 'completed')
})
