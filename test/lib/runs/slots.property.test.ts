import fc from 'fast-check'
import t from 'tap'
import { RunEngine, type Run } from '../../../lib/runs/index.ts'
import { FaultPlan, faultyStore, memoryStore } from '../../../lib/stores/index.ts'
import { ledger } from '../../helpers/ledger-protocol.ts'
import { approve, askFor, turn } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent, type ScriptedExecution } from '../../helpers/scripted-agent.ts'
import { VirtualClock } from '../../helpers/virtual-clock.ts'

const MAX_RUNS = 3
const LEASE_MS = 3_000
const STEPS = ['start', 'start', 'start', 'finish', 'fail', 'pause', 'resume', 'stop', 'leave', 'fault', 'outage', 'wait', 'crash', 'close'] as const

interface Step { readonly does: typeof STEPS[number], readonly node: number, readonly pick: number }

interface Node {
  readonly engine: RunEngine
  readonly plan: FaultPlan
  readonly runs: { readonly run: Run, readonly agent: ScriptedAgent, execution: ScriptedExecution | undefined }[]
  isDown: boolean
}

/** What came of a promise, if anything has without time going by. */
async function now<T> (promise: Promise<T>): Promise<T | Error | undefined> {
  let result: T | Error | undefined
  promise.then((value) => { result = value }, (error: Error) => { result = error })
  for (let i = 0; i < 6; i++) await turn()
  return result
}

/** Plays the steps; says what is wrong with the slots in the end. */
async function play (clock: VirtualClock, steps: readonly Step[]): Promise<string | undefined> {
  const store = memoryStore({ now: () => 1_000_000 + clock.now })
  const makeNode = (): Node => {
    const plan = new FaultPlan()
    const engine = new RunEngine({ store: faultyStore(store, plan), leaseMs: LEASE_MS, storeTimeoutMs: 500, limits: { maxRuns: MAX_RUNS } })
    engine.register(ledger)
    return { engine, plan, runs: [], isDown: false }
  }
  const nodes = [makeNode(), makeNode(), makeNode()]
  let count = 0
  const start = async (node: Node): Promise<string> => {
    const agent = new ScriptedAgent()
    const name = `r${++count}`
    const result = await now(node.engine.start(specOf(agent, { session: name, clientId: name, onDisconnect: 'interrupt' })))
    if (result instanceof Error) return (result as Error & { code: string }).code
    if (result?.kind !== 'started') return result?.kind ?? 'hangs'
    const [execution] = agent.executions
    node.runs.push({ run: result.run, agent, execution })
    return 'started'
  }

  for (const { does, node: index, pick } of steps) {
    const node = nodes[index] as Node // there are as many
    if (node.isDown) continue
    const known = node.runs[pick % Math.max(1, node.runs.length)]
    switch (does) {
      case 'start': await start(node); break
      case 'finish': known?.agent.executions.at(-1)?.finish(); break
      case 'fail': known?.agent.executions.at(-1)?.fail(new Error('x')); break
      case 'pause':
        known?.agent.executions.at(-1)?.say(...askFor(`c${pick}`)).catch(() => {})
        known?.agent.executions.at(-1)?.finish()
        break
      case 'resume': if (known?.run.record.state === 'waiting') await now(node.engine.resume(known.run, { ...specOf(known.agent), decisions: [approve(`c${pick}`)] })); break
      case 'stop': if (known !== undefined) await now(node.engine.stop(known.run)); break
      case 'leave': known?.run.connect({ own: true }).close(); break
      case 'fault':
        node.plan[pick % 2 === 0 ? 'failBefore' : 'failAfter']((['gates.enter', 'gates.leave', 'runs.create', 'runs.commit', '*'] as const)[pick % 5] as '*', { times: 1 + pick % 3 })
        break
      case 'outage': {
        const hold = node.plan.hold('*')
        await clock.advance(2_000 + pick * 500)
        hold.release()
        break
      }
      case 'wait': await clock.advance(500 + pick * 100); break
      case 'crash':
        node.isDown = true
        node.plan.hold('*')
        break
      case 'close':
        node.isDown = true
        await clock.until(node.engine.close({ timeoutMs: 500 }), 5_000, 'closing')
    }
    for (let i = 0; i < 4; i++) await turn()
  }

  // What is still alive ends, what is dead runs out.
  for (const { plan, isDown } of nodes) if (!isDown) plan.heal()
  const live = nodes.filter(({ isDown }) => !isDown)
  await clock.advance(5_000)
  for (const { engine, runs } of live) for (const { run } of runs) await clock.until(engine.stop(run), 20_000, 'stopping')
  await clock.advance(4 * LEASE_MS)
  const fresh = makeNode()
  const outcomes: string[] = []
  for (let i = 0; i <= MAX_RUNS; i++) outcomes.push(await start(fresh))
  for (const { plan } of nodes) plan.heal()
  await Promise.all([...nodes, fresh].map(({ engine }) => clock.until(engine.close({ timeoutMs: 100 }), 20_000, 'closing')))
  await store.close()
  const wanted = [...Array.from({ length: MAX_RUNS }, () => 'started'), 'AGT_ERR_RUN_LIMIT']
  return outcomes.join() === wanted.join() ? undefined : outcomes.join()
}

t.test('whatever starts, ends, fails and dies, all slots are free in the end, and no more than there are', async (t) => {
  const step = fc.record({ does: fc.constantFrom(...STEPS), node: fc.nat({ max: 2 }), pick: fc.nat({ max: 20 }) })
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const clock = VirtualClock.install()
    try {
      const problem = await play(clock, steps)
      if (problem !== undefined) throw new Error(problem)
    } finally {
      clock.uninstall()
    }
  }), { numRuns: 60 })
  t.pass('no slot was lost, and none came twice')
})
