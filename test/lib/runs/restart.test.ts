import t, { type Test } from 'tap'
import { type Agent } from '../../../lib/agent/index.ts'
import { type Restart, type Run } from '../../../lib/runs/index.ts'
import { memoryStore, type RunRecord, type Store } from '../../../lib/stores/index.ts'
import { fakeTime } from '../../helpers/fake-time.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { approve, makeEngine, pause, Reader, runOf, type TestEngine } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

const LEASE_MS = 3_000

interface Nodes {
  readonly store: Store
  /** A node that begins lost runs again, with what `restart` says. */
  node (name: string, restart?: Restart): TestEngine
  /** Stops a node from renewing anything, as a dead process does. */
  kill (node: TestEngine): void
  pass (ms: number): Promise<void>
}

function nodes (t: Test): Nodes {
  const { now, pass } = fakeTime(t)
  const store = memoryStore({ now })
  t.teardown(() => store.close())
  return {
    store,
    node (name, restart) {
      const made = makeEngine(t, { store, node: name, leaseMs: LEASE_MS })
      made.engine.register(ledger, restart)
      return made
    },
    kill ({ plan }) {
      for (const operation of ['leases.renew', 'gates.renew', 'nodes.beat', 'leases.expired', 'log.append', 'runs.commit'] as const) plan.failBefore(operation, { times: Infinity })
    },
    pass: (ms) => pass(ms, 500)
  }
}

/** Begins every lost run again with this agent, and notes it. */
function again (agent: Agent): { readonly restart: Restart, readonly lost: RunRecord[], readonly runs: Run[] } {
  const lost: RunRecord[] = []
  const runs: Run[] = []
  return {
    lost,
    runs,
    restart: async (record, begin) => {
      lost.push(record)
      runs.push(await begin(specOf(agent)))
      return true
    }
  }
}

const textsOf = (reader: Reader): string[] => reader.lines.map((line) => {
  const { kind, text } = JSON.parse(line.slice(line.indexOf('{'))) as { readonly kind: string, readonly text?: string }
  return text ?? kind
})

t.test('the run of a dead node is begun again in the same log, and its readers go on reading', async (t) => {
  const { node, kill, pass } = nodes(t)
  const [first, second] = [new ScriptedAgent(), new ScriptedAgent()]
  const { restart, lost } = again(second)
  const a = node('a')
  const b = node('b', restart)
  runOf(await a.engine.start(specOf(first)))
  const dead = await first.called()
  await dead.text('one')
  await pass(500)
  const found = await b.engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  found.connect()
  const reader = new Reader(found, ledgerView('full'), { from: 'start' })
  kill(a)
  await pass(2 * LEASE_MS)
  t.match(lost, [{ state: 'running', fence: 2, clientId: 'r1' }])
  const execution = await second.called()
  await execution.text('again')
  execution.finish()
  t.match(await found.ended, { state: 'completed' })
  await pass(500)
  t.same(textsOf(reader), ['started', 'one', 'started', 'again', 'text-end', 'success'])
  t.same(reader.gaps, [])
  t.equal(reader.end, 'complete')
  t.match(await b.engine.find({}, 'ledger', 'r1'), { record: { state: 'completed', node: 'b' } })
})

t.test('a run that takes its nodes with it is begun again three times, and then ends', async (t) => {
  const { node, kill, pass, store } = nodes(t)
  const agent = new ScriptedAgent()
  const { restart, lost } = again(agent)
  let last = node('0')
  const run = runOf(await last.engine.start(specOf(agent)))
  for (let life = 1; life <= 4; life++) {
    kill(last)
    last = node(`${life}`, restart)
    await pass(2 * LEASE_MS)
  }
  t.equal(lost.length, 3)
  t.match(await store.runs.get(run.record.key), { state: 'lost', end: { code: 'NODE_LOST' }, node: '4' })
})

t.test('what had paused is not begun again: nobody is asked twice, nothing done twice', async (t) => {
  const { node, kill, pass, store } = nodes(t)
  const agent = new ScriptedAgent({ resume: true })
  const { restart, lost } = again(agent)
  const a = node('a')
  const run = runOf(await a.engine.start(specOf(agent)))
  await pause(agent, run)
  const { keepMs, ...spec } = specOf(agent)
  runOf(await a.engine.resume(run, { ...spec, decisions: [approve('c1')] }))
  await agent.called()
  node('b', restart)
  kill(a)
  await pass(2 * LEASE_MS)
  t.same(lost, [])
  t.match(await store.runs.get(run.record.key), { state: 'lost', end: { code: 'NODE_LOST' } })
})

t.test('a run that can not be begun again ends as lost, and one whose restart fails is tried again', async (t) => {
  const { node, kill, pass, store } = nodes(t)
  const agent = new ScriptedAgent()
  let tries = 0
  const a = node('a')
  const b = node('b', async () => {
    tries++
    if (tries === 1) throw new Error('not now')
    return false
  })
  const run = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  kill(a)
  await pass(LEASE_MS + 1_500)
  t.equal(tries, 1)
  t.match(await store.runs.get(run.record.key), { state: 'running' })
  await pass(LEASE_MS + 1_500)
  t.equal(tries, 2)
  t.match(await store.runs.get(run.record.key), { state: 'lost', node: 'b' })
  t.equal(b.plan.count('runs.commit'), 1)
})

t.test('a closing node begins nothing again, and leaves what is lost to others', async (t) => {
  const { node, kill, pass, store } = nodes(t)
  const agent = new ScriptedAgent()
  const { restart, lost } = again(agent)
  const a = node('a')
  const b = node('b', restart)
  const run = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  b.engine.drain()
  kill(a)
  await pass(2 * LEASE_MS)
  t.same(lost, [])
  t.match(await store.runs.get(run.record.key), { state: 'running', node: 'a' })
})

t.test('a node that closes leaves to others what they can begin again, and interrupts the rest', async (t) => {
  const { node, pass, store } = nodes(t)
  const [handed, kept] = [new ScriptedAgent({ restartable: true }), new ScriptedAgent()]
  const second = new ScriptedAgent({ restartable: true })
  const { restart, lost } = again(second)
  const a = node('a', restart)
  node('b', restart)
  const run = runOf(await a.engine.start(specOf(handed)))
  const other = runOf(await a.engine.start(specOf(kept, { clientId: 'r2', session: 's2' })))
  const own = new Reader(run, ledgerView('full'), { upTo: 'last' })
  await Promise.all([handed.called(), kept.called()])
  await pass(500)
  await a.engine.close({ running: 'hand-over' })
  t.equal(own.end, 'closed', 'its readers come again with their cursor')
  t.match(await store.runs.get(other.record.key), { state: 'cancelled', end: { code: 'shutdown' } })
  t.match(await store.runs.get(run.record.key), { state: 'running' })
  await pass(LEASE_MS)
  t.match(lost, [{ clientId: 'r1', fence: 2 }])
  const execution = await second.called()
  execution.finish()
  await pass(500)
  t.match(await store.runs.get(run.record.key), { state: 'completed', node: 'b' })
})

t.test('what nobody could begin again is interrupted: where it had paused, and where nobody knows how', async (t) => {
  const { node, store } = nodes(t)
  const agent = new ScriptedAgent({ restartable: true, resume: true })
  const a = node('a')
  const run = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  await a.engine.close({ running: 'hand-over' })
  t.match(await store.runs.get(run.record.key), { state: 'cancelled', end: { code: 'shutdown' } }, 'no way to restart')
  const b = node('b', again(agent).restart)
  const paused = runOf(await b.engine.start(specOf(agent, { clientId: 'r2', session: 's2' })))
  await pause(agent, paused)
  const { keepMs, ...spec } = specOf(agent)
  runOf(await b.engine.resume(paused, { ...spec, decisions: [approve('c1')] }))
  await agent.called()
  await b.engine.close({ running: 'hand-over' })
  t.match(await store.runs.get(paused.record.key), { state: 'cancelled', end: { code: 'shutdown' } }, 'it had asked')
})
