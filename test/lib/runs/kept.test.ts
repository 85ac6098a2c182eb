import t from 'tap'
import { type RunProtocol } from '../../../lib/runs/index.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { agentOf, makeEngine, pause, runOf } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ledger, type LedgerState } from '../../helpers/ledger-protocol.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

t.test('a protocol says what the record keeps of an end', async (t) => {
  const protocol: RunProtocol<LedgerState> = {
    ...ledger, name: 'keeping', endRecord: (end, { clientId }) => end.kind === 'completed' ? { result: `of ${clientId}` } : { message: 'Told so.' }
  }
  const { engine } = makeEngine(t)
  const done = runOf(await engine.start(specOf(agentOf(async function * () {}), { protocol })))
  t.match(await done.ended, { state: 'completed', end: { kind: 'completed', code: 'MODEL_STOP', result: 'of r1' } })
  const failed = runOf(await engine.start(specOf(agentOf(async function * () { throw new Error('secret') }), { protocol, clientId: 'r2' })))
  t.match(await failed.ended, { state: 'failed', end: { kind: 'failed', code: 'internal_error', message: 'Told so.' } })
})

t.test('an end record that cannot be made is the run\'s failure', async (t) => {
  const protocol: RunProtocol<LedgerState> = { ...ledger, name: 'breaking', endRecord: () => { throw new Error('broken') } }
  const { engine } = makeEngine(t)
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}), { protocol })))
  t.match(await run.ended, { state: 'failed', end: { kind: 'failed', code: 'internal_error' } })
})

t.test('an agent is told the name of its session that the start gives it', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  await engine.start(specOf(agent, { session: 'u1 s1', sessionId: 's1' }))
  t.equal((await agent.called()).context.sessionId, 's1')
})

t.test('a run is kept after its end for as long as its start said', async (t) => {
  let now = Date.now()
  const store = memoryStore({ now: () => now })
  t.teardown(() => store.close())
  const { engine } = makeEngine(t, { store })
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}), { keepMs: 5_000 })))
  const record = await run.ended
  t.equal(record.expiresAt, (record.endedAt ?? 0) + 5_000)
  t.ok(await store.runs.get(record.key))
  now = (record.expiresAt ?? 0) + 1
  t.equal(await store.runs.get(record.key), undefined)
})

t.test('only a run that has ended is deleted, and then its id is free', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  t.equal(await engine.delete(run), false)
  await pause(agent, run)
  t.equal(await engine.delete(run), false)
  await engine.stop(run)
  t.equal(await engine.delete(run), true)
  t.equal(await engine.find({}, 'ledger', 'r1'), undefined)
  t.equal(await engine.delete(run), true, 'again changes nothing')
})
