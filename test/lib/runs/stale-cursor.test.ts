import t from 'tap'
import { makeEngine, Reader, runOf } from '../../helpers/run-engine.ts'
import { ledgerView } from '../../helpers/ledger-protocol.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'
import { VirtualClock } from '../../helpers/virtual-clock.ts'

t.test('a caller who saw what was never stored comes back to a gap, not to the end that was stored in its place', async (t) => {
  const clock = VirtualClock.install()
  t.teardown(() => { clock.uninstall() })
  const { engine, plan } = makeEngine(t, { storeTimeoutMs: 500 })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await clock.advance(0)
  const caller = new Reader(run, ledgerView('verbose'), { upTo: 'last' })
  plan.failBefore('*', { times: Infinity })
  execution.text('x').catch(() => {})
  await clock.advance(0)
  const { epoch, last, stored } = run.topic
  t.ok(last > stored, 'seen ahead of the store')
  t.ok(caller.text.includes('"x"'))
  await clock.until(run.ended, 20_000, 'the end')
  plan.heal()
  await clock.advance(60_000)
  const found = await engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  t.match(found.record, { state: 'lost' })
  for (let seq = stored + 1; seq <= last; seq++) {
    const back = new Reader(found, ledgerView('verbose'), { after: { epoch, seq } })
    t.equal(back.gaps.length, 1, `the cursor ${seq} of ${stored} stored`)
    t.ok(back.text.includes('NODE_LOST'), 'the end is told')
  }
})
