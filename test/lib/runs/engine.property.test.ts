import fc from 'fast-check'
import t from 'tap'
import { type DisconnectPolicy, type Connection, type Run, RunEngine, type RunSpec } from '../../../lib/runs/index.ts'
import { FaultPlan, faultyStore, isEnded, memoryStore, type OperationName, type Store } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { approve, askFor, deny, Reader, resultOf, turn } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent, type ScriptedExecution } from '../../helpers/scripted-agent.ts'

type Step =
  | { readonly kind: 'start', readonly session: number, readonly busy: RunSpec['onBusySession'], readonly policy: DisconnectPolicy, readonly isEnvelope: boolean, readonly timeoutMs: number }
  | { readonly kind: 'again' | 'conflict' | 'connect' | 'leave' | 'read' | 'text' | 'ask' | 'finish' | 'fail' | 'result' | 'stop' | 'stopSession' | 'turn', readonly run: number }
  | { readonly kind: 'answer', readonly run: number, readonly approved: boolean, readonly twice: boolean }
  | { readonly kind: 'fault', readonly operation: OperationName, readonly after: boolean, readonly times: number }

/** Transient faults of whatever a run needs after its start; whole outages have tests of their own. */
const FAULTS: readonly OperationName[] = [
  'log.append', 'runs.commit', 'runs.update', 'leases.renew', 'leases.acquire', 'gates.leave', 'gates.renew', 'gates.enter', 'interrupts.finish', 'interrupts.claim',
  'index.add', 'runs.create', 'log.saveFold', 'presence.nodes', 'nodes.bind'
]

const run = fc.nat(7)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('start' as const),
      session: fc.nat(1),
      busy: fc.constantFrom('reject' as const, 'queue' as const, 'supersede' as const),
      policy: fc.constantFrom<DisconnectPolicy>('interrupt', 'continue', { graceMs: 1 }),
      isEnvelope: fc.boolean(),
      timeoutMs: fc.constantFrom(0, 0, 0, 2)
    })
  },
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constantFrom('again' as const, 'conflict' as const, 'connect' as const, 'leave' as const, 'read' as const, 'text' as const, 'text' as const, 'ask' as const,
        'ask' as const, 'finish' as const, 'finish' as const, 'fail' as const, 'result' as const, 'result' as const, 'stop' as const, 'stopSession' as const, 'turn' as const, 'turn' as const),
      run
    })
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('answer' as const), run, approved: fc.boolean(), twice: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('fault' as const), operation: fc.constantFrom(...FAULTS), after: fc.boolean(), times: fc.integer({ min: 1, max: 2 }) }) }
)

interface Known { readonly spec: RunSpec, readonly run: Run, readonly connections: Connection[], readonly readers: { readonly reader: Reader, readonly after: number }[] }

/** Plays steps against an engine and keeps what the world has seen of it. */
class World {
  readonly plan = new FaultPlan()
  readonly memory: Store = memoryStore()
  readonly engine = new RunEngine({ store: faultyStore(this.memory, this.plan), storeTimeoutMs: 500 })
  readonly agent = new ScriptedAgent()
  readonly known: Known[] = []
  readonly background: Promise<unknown>[] = []
  readonly problems: string[] = []
  /** Executions of each approved call. */
  readonly executed = new Map<string, number>()
  #ids = 0
  #calls = 0

  async play (step: Step): Promise<void> {
    if (step.kind === 'start') return await this.#start(step)
    if (step.kind === 'fault') {
      this.plan[step.after ? 'failAfter' : 'failBefore'](step.operation, { times: step.times })
      return
    }
    const known = this.known[step.run % Math.max(1, this.known.length)]
    if (known === undefined) return
    const execution = this.#executionOf(known)
    switch (step.kind) {
      case 'again': return await this.#again(known)
      case 'conflict': return await this.#conflict(known)
      case 'connect': known.connections.push(known.run.connect({ own: step.run > 3 })); break
      case 'leave': known.connections.pop()?.close(); break
      case 'read': this.#read(known, Math.min(step.run, known.run.topic.stored)); break
      case 'text': execution?.text('x').catch(() => {}); break
      case 'ask': execution?.say(...askFor(`c${this.#calls++}`)).catch(() => {}); break
      case 'result': this.#act(execution); break
      case 'finish': execution?.finish(); break
      case 'fail': execution?.fail(new Error('failed')); break
      case 'stop': this.background.push(this.engine.stop(known.run).catch(() => {})); break
      case 'stopSession': this.background.push(this.engine.stopSession(known.spec.owner, known.spec.protocol.name, known.spec.session).catch(() => {})); break
      case 'answer': return await this.#answer(known, step.approved, step.twice)
    }
    await turn()
  }

  /** Everything comes to its end: faults heal, agents end, waiting runs are stopped. */
  async settle (): Promise<void> {
    this.plan.heal()
    await Promise.all(this.background)
    for (const { run } of this.known) {
      await this.engine.stop(run)
      await run.ended
    }
    await turn()
    await turn()
  }

  async #start ({ session, busy, policy, isEnvelope, timeoutMs }: Step & { kind: 'start' }): Promise<void> {
    const clientId = `r${this.#ids++}`
    await this.#admit(specOf(this.agent, {
      protocol: isEnvelope ? envelope : ledger,
      holdGateWhileWaiting: !isEnvelope,
      clientId,
      session: `${isEnvelope ? 'e' : 'l'}${session}`,
      idempotency: { key: clientId, fingerprint: 'f' },
      onBusySession: busy,
      onDisconnect: policy,
      runTimeoutMs: timeoutMs,
      cancelGraceMs: 50
    }))
  }

  async #admit (spec: RunSpec): Promise<void> {
    const result = await this.engine.start(spec).catch((error: { code?: string }) => {
      if (error.code !== 'AGT_ERR_STORE_UNAVAILABLE') throw error
    })
    if (result?.kind !== 'started') return
    const known: Known = { spec, run: result.run, connections: [], readers: [] }
    this.known.push(known)
    this.#read(known, 0)
    await turn()
  }

  async #again ({ spec, run }: Known): Promise<void> {
    const result = await this.engine.start(spec).catch(() => undefined)
    if (result === undefined) return
    if (result.kind !== 'existing') this.problems.push(`a duplicate of ${spec.clientId} was ${result.kind}`)
    else if (result.run.record.key.id !== run.record.key.id) this.problems.push(`a duplicate of ${spec.clientId} is another run`)
  }

  async #conflict ({ spec }: Known): Promise<void> {
    const result = await this.engine.start({ ...spec, idempotency: { key: spec.clientId, fingerprint: 'g' } }).catch(() => undefined)
    if (result !== undefined && result.kind !== 'conflict') this.problems.push(`another body of ${spec.clientId} was ${result.kind}`)
  }

  #read (known: Known, after: number): void {
    known.readers.push({ after, reader: new Reader(known.run, ledgerView('verbose'), after === 0 ? {} : { after: { epoch: known.run.topic.epoch, seq: after } }) })
  }

  /** The agent executes what it was allowed to. */
  #act (execution: ScriptedExecution | undefined): void {
    for (const decision of execution?.input.resume ?? []) {
      if (decision.kind !== 'confirm' || !decision.approved) continue
      const id = `${execution?.context.runId} ${decision.toolCallId}`
      if (this.executed.has(id)) continue
      this.executed.set(decision.toolCallId, (this.executed.get(decision.toolCallId) ?? 0) + 1)
      this.executed.set(id, 1)
      execution?.say(...resultOf(decision.toolCallId)).catch(() => {})
    }
  }

  async #answer (known: Known, approved: boolean, twice: boolean): Promise<void> {
    const { spec, run } = known
    const open = await this.memory.interrupts.open(spec.owner, spec.protocol.name, spec.session)
    const mine = open.filter(({ run: { id } }) => id === run.record.key.id)
    const decisions = mine.flatMap(({ pending }) => pending.kind === 'input' ? [] : [approved ? approve(pending.toolCall.id) : deny(pending.toolCall.id)])
    if (decisions.length === 0) return
    const input = { messages: [], history: 'append' as const, resume: decisions }
    const answers = Array.from({ length: twice ? 2 : 1 }, async () => {
      if (spec.protocol === envelope) {
        const clientId = `r${this.#ids++}`
        await this.#admit({ ...spec, clientId, idempotency: { key: clientId, fingerprint: 'f' }, input, onBusySession: 'queue', resumes: { interrupts: mine.map(({ id }) => id), decisions } })
        return false
      }
      const result = await this.engine.resume(run, { ...spec, input, decisions }).catch(() => undefined)
      return result?.kind === 'resumed'
    })
    const resumed = (await Promise.all(answers)).filter((isResumed) => isResumed).length
    if (resumed > 1) this.problems.push(`${spec.clientId} was resumed ${resumed} times at once`)
    await turn()
  }

  #executionOf ({ spec }: Known): ScriptedExecution | undefined {
    return this.agent.executions.findLast(({ context }) => context.runId === spec.clientId)
  }
}

/** What has to hold whatever happened. */
async function check (world: World): Promise<string[]> {
  const { memory, engine } = world
  const problems = [...world.problems]
  const executions = new Map<string, number>()
  for (const { context } of world.agent.executions) executions.set(context.runId, (executions.get(context.runId) ?? 0) + 1)
  for (const { spec, run, readers } of world.known) {
    const name = spec.clientId
    const stored = await memory.runs.get(run.record.key)
    const isGivenUp = run.record.end?.code === 'STORE_UNAVAILABLE' || run.record.state === 'lost'
    if (stored === undefined) { problems.push(`${name} is gone`); continue }
    // R2, R3: over, or waiting for the session's next run.
    const isWaiting = stored.state === 'waiting' && spec.protocol === envelope
    if (!isGivenUp && !isEnded(stored.state) && !isWaiting) problems.push(`${name} is ${stored.state}`)
    const page = await memory.log.read(run.record.key, 0, 10_000)
    const log = page?.events ?? []
    // R6: dense from 1.
    log.forEach(({ seq }, index) => { if (seq !== index + 1) problems.push(`${name}: ${seq} at ${index}`) })
    // R1, R3: what was told is what is stored.
    const told = run.topic.read(0).filter(({ seq }) => seq <= run.topic.stored)
    told.forEach(({ data }, index) => { if (log[index]?.data !== data) problems.push(`${name}: told ${data}, stored ${log[index]?.data}`) })
    if (!isGivenUp && told.length !== log.length) problems.push(`${name}: told ${told.length} of ${log.length}`)
    // One terminal, last.
    const terminals = log.flatMap(({ data }, index) => isTerminal(JSON.parse(data) as Line) ? [index] : [])
    if (!isGivenUp && (terminals.length !== 1 || terminals[0] !== log.length - 1)) problems.push(`${name}: terminals at ${terminals.join()} of ${log.length}`)
    // Each pause in the run is followed by another execution, nothing else.
    log.forEach(({ data }, index) => {
      const next = log[index + 1]
      if ((JSON.parse(data) as Line).kind === 'asks' && next !== undefined && (JSON.parse(next.data) as Line).kind !== 'started') problems.push(`${name}: ${next.data} after a pause`)
    })
    // R4: every reader saw exactly what follows its cursor.
    for (const { reader, after } of readers) {
      const seen = reader.lines.map((text) => text.slice(text.indexOf('{')))
      const expected = told.slice(after).map(({ data }) => data)
      if (JSON.stringify(seen) !== JSON.stringify(expected)) problems.push(`${name}: a reader from ${after} saw ${seen.length} of ${expected.length}`)
      if (reader.end === undefined) problems.push(`${name}: a reader was not ended`)
    }
    // R12: the snapshot is where the log ends.
    const snapshot = run.snapshot()
    if (spec.protocol === ledger && !isGivenUp && snapshot?.seq !== run.topic.last) problems.push(`${name}: a snapshot of ${snapshot?.seq}`)
    // R21: nothing stays claimed, nothing of an ended run stays open.
    for (const interrupt of await memory.interrupts.list(run.record.key)) {
      if (interrupt.state === 'claimed' && !isGivenUp) problems.push(`${name}: ${interrupt.id} is still claimed`)
      if (interrupt.state === 'open' && isEnded(stored.state)) problems.push(`${name}: ${interrupt.id} is still open`)
    }
  }
  // R21: at most once.
  for (const [id, count] of world.executed) if (count > 1) problems.push(`${id} was executed ${count} times`)
  // R19: free afterwards.
  for (const session of ['l0', 'l1', 'e0', 'e1']) {
    const runs = world.known.filter(({ spec }) => spec.session === session)
    if (runs.some(({ run }) => run.record.end?.code === 'STORE_UNAVAILABLE' || run.record.state === 'lost')) continue
    const holder = await memory.gates.holder({}, session)
    if (holder !== undefined) problems.push(`session ${session} is held by ${JSON.stringify(holder.data)}`)
  }
  await engine.close({ timeoutMs: 200 })
  await memory.close()
  return problems
}

interface Line { readonly kind?: string, readonly end?: string, readonly error?: string }

function isTerminal ({ kind, end, error }: Line): boolean {
  return kind === 'success' || kind === 'error' || kind === 'cancelled' || end !== undefined || (kind === undefined && error !== undefined)
}

t.test('whatever happens in whatever order, each run ends once and everybody saw what is stored', async (t) => {
  const alive = setInterval(() => {}, 60_000)
  t.teardown(() => { clearInterval(alive) })
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 40 }), async (steps) => {
    const world = new World()
    for (const one of steps) await world.play(one)
    await world.settle()
    const problems = await check(world)
    if (problems.length > 0) throw new Error(problems.join('\n'))
  }), { numRuns: Number(process.env.PROPERTY_RUNS ?? 150), endOnFailure: true })
  t.pass()
})
