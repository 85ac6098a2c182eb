import { type AgentInput, type RuntimeContext } from '../../../../lib/agent/index.ts'
import { RunEngine, type RunSpec } from '../../../../lib/runs/index.ts'
import { FaultPlan, faultyStore, type InterruptRecord, memoryStore, type Owner, type Store } from '../../../../lib/stores/index.ts'
import { envelope } from '../../../helpers/envelope-protocol.ts'
import { ledger, LEDGER_LEVELS } from '../../../helpers/ledger-protocol.ts'
import { approve, askFor, deny, resultOf } from '../../../helpers/run-engine.ts'
import { specOf } from '../../../helpers/run-specs.ts'
import { ScriptedAgent, type ScriptedExecution } from '../../../helpers/scripted-agent.ts'
import { VirtualClock } from '../../../helpers/virtual-clock.ts'
import { Known } from './known.ts'
import { pry } from './pry.ts'
import { type Outage, type StartStep, type Step } from './steps.ts'

export const STORE_TIMEOUT_MS = 500
/** Milliseconds a lease lasts, and what goes by before a node's runs are ended by others. */
export const LEASE_MS = 15_000
/** Within this many milliseconds each call of the engine is over, whatever its store does: a start that fails undoes what it did, each step with a deadline. */
const CALL_LIMIT_MS = 15_000
const OWNERS: readonly Owner[] = [{ id: 'a' }, { id: 'a', tenant: 't' }, {}]
const LONG = 'y'.repeat(40_000)
const LEVELS = Object.keys(LEDGER_LEVELS) as (keyof typeof LEDGER_LEVELS)[]

/** Plays steps against an engine, in a time of its own, and keeps what the world has seen of it. */
export class World {
  readonly clock = VirtualClock.install()
  readonly plan = new FaultPlan()
  readonly memory: Store = memoryStore()
  readonly engine: RunEngine
  readonly known: Known[] = []
  readonly problems: string[] = []
  /** Executions by the label of their run. */
  readonly executions = new Map<string, ScriptedExecution[]>()
  /** Agents that a factory made, by the label of their run. */
  readonly made = new Map<string, ScriptedAgent[]>()
  /** Executions of each approved call. */
  readonly executed = new Map<string, number>()
  /** Nothing has failed so far. */
  isCalm = true
  #outage: Outage | undefined
  readonly #calls: { readonly name: string, readonly at: number, readonly done: Promise<void> }[] = []
  readonly #ids = new Map<Owner, number>()
  readonly #shared: ScriptedAgent
  #toolCalls = 0

  constructor () {
    this.engine = new RunEngine({ store: { ...faultyStore(this.memory, this.plan), isVolatile: false }, storeTimeoutMs: STORE_TIMEOUT_MS, leaseMs: LEASE_MS })
    this.#shared = this.#makeAgent(false)
  }

  async play (step: Step): Promise<void> {
    switch (step.kind) {
      case 'start': this.#start(step); break
      case 'fault':
        this.isCalm = false
        this.plan[step.after ? 'failAfter' : 'failBefore'](step.operation, { times: step.times })
        break
      case 'outage': this.#away(step.how); break
      case 'back': this.#back(); break
      case 'wait': await this.clock.advance(step.ms); break
      default: {
        const known = this.known[step.run % Math.max(1, this.known.length)]
        if (known !== undefined) await this.#play(step, known)
      }
    }
    await this.clock.advance(0)
    this.#look()
  }

  /** The store goes away, and stays away until {@link recover}. */
  lose (how: Outage): void {
    this.#back()
    this.#away(how)
  }

  recover (): void {
    this.#back()
    this.plan.heal()
  }

  /** Calls that are under way are over in time. */
  async finishCalls (): Promise<void> {
    for (const { name, at, done } of this.#calls.splice(0)) await this.clock.until(done, Math.max(1, CALL_LIMIT_MS - (this.clock.now - at)), name)
  }

  /** The run's newest execution. */
  executionOf ({ label }: Known): ScriptedExecution | undefined {
    return this.executions.get(label)?.at(-1)
  }

  /** A call of the engine, which ends in time; one that the store fails is none. */
  call<T> (name: string, work: () => Promise<T>, then: (result: T) => unknown = () => {}): void {
    const done = work().then(then, (error: { code?: string }) => {
      if (error.code !== 'AGT_ERR_STORE_UNAVAILABLE') this.problems.push(`${name}: ${String(error)}`)
    }).then(() => {})
    this.#calls.push({ name, at: this.clock.now, done })
  }

  /** Opens a session for one more run; what is known of it once it has started is kept. */
  start (spec: RunSpec, label: string, step: StartStep): void {
    this.call(`starting ${label}`, () => this.engine.start(spec), async (result) => {
      if (result.kind !== 'started') return
      const { run } = result
      this.known.push(new Known(label, spec, step, run, () => this.clock.now))
      if (step.isReadElsewhere) await this.memory.presence.enter(run.record.key, 'elsewhere', 86_400_000)
    })
  }

  async #play (step: Exclude<Step, { readonly kind: 'start' | 'fault' | 'outage' | 'back' | 'wait' }>, known: Known): Promise<void> {
    const execution = this.executionOf(known)
    const { run, spec } = known
    switch (step.kind) {
      case 'again': this.#again(known); break
      case 'conflict': this.#conflict(known); break
      case 'pry': pry(this, known); break
      case 'own': case 'connect': known.connect(step.kind === 'own'); break
      case 'leave': known.leave([...known.readers].at(-1)); break
      case 'leaveOwn': known.leave(known.own); break
      case 'stall': for (const { listener } of known.readers) listener.stalledAt ??= this.clock.now; break
      case 'takeOn': for (const { listener } of known.readers) listener.takeOn(); break
      case 'read': known.listen(LEVELS[step.run % LEVELS.length] ?? 'full', Math.min(step.run, run.topic.stored)); break
      case 'text': this.#say(execution, 'x'); break
      case 'long': this.#say(execution, LONG); break
      case 'many': this.#say(execution, ...Array.from({ length: 300 }, () => 'z')); break
      case 'ask':
        known.isClosing = true
        execution?.say(...askFor(`c${this.#toolCalls++}`)).catch(() => {})
        break
      case 'result': this.#act(known, execution); break
      case 'finish': case 'fail':
        known.isClosing = true
        if (step.kind === 'finish') execution?.finish()
        else execution?.fail(new Error('failed'))
        break
      case 'stop':
        known.isClosing = true
        this.call(`stopping ${known.label}`, () => this.engine.stop(run))
        break
      case 'stopSession':
        for (const one of this.known) if (one.spec.session === spec.session) one.isClosing = true
        this.call(`stopping the session of ${known.label}`, () => this.engine.stopSession(spec.owner, spec.protocol.name, spec.session))
        break
      case 'answer': await this.#answer(known, step.approved, step.twice); break
    }
  }

  #start (step: StartStep): void {
    const owner = OWNERS[step.owner] ?? {}
    const { clientId, label } = this.#name(owner)
    this.start(specOf(this.#agentOf(step, label), {
      protocol: step.isEnvelope ? envelope : ledger,
      holdGateWhileWaiting: !step.isEnvelope,
      owner,
      clientId,
      session: `s${step.session}`,
      idempotency: { key: clientId, fingerprint: 'f' },
      onBusySession: step.busy,
      onDisconnect: step.policy,
      runTimeoutMs: step.timeoutMs,
      writeTimeoutMs: step.writeTimeoutMs,
      cancelGraceMs: 50,
      replay: step.isShort ? { maxEvents: 16, maxBytes: 20_000, ttlMs: 60_000 } : { maxEvents: 100_000, maxBytes: 100_000_000, ttlMs: 600_000 },
      prepareContext: (context) => { context.attributes.set('label', label) }
    }), label, step)
  }

  #name (owner: Owner): { readonly clientId: string, readonly label: string } {
    const id = this.#ids.get(owner) ?? 0
    this.#ids.set(owner, id + 1)
    return { clientId: `r${id}`, label: `${OWNERS.indexOf(owner)}/r${id}` }
  }

  #agentOf ({ agent }: StartStep, label: string): RunSpec['agent'] {
    if (agent === 'shared') return this.#shared
    return () => {
      const made = this.#makeAgent(agent === 'restored')
      this.made.set(label, [...this.made.get(label) ?? [], made])
      return made
    }
  }

  #makeAgent (resume: boolean): ScriptedAgent {
    const agent = new ScriptedAgent({ resume })
    const stream = agent.stream.bind(agent)
    agent.stream = (input: AgentInput, context: RuntimeContext) => {
      const executions = stream(input, context)
      this.#began(agent.executions.at(-1) as ScriptedExecution)
      return executions
    }
    return agent
  }

  /** R19: of a session one run is executed at a time. */
  #began (execution: ScriptedExecution): void {
    const label = labelOf(execution)
    const mine = this.executions.get(label) ?? []
    mine.push(execution)
    this.executions.set(label, mine)
    const spec = this.#find(label)?.spec
    for (const { label: other, spec: theirs } of this.known) {
      const isSame = spec !== undefined && theirs.owner === spec.owner && theirs.session === spec.session
      const busy = this.executions.get(other)?.find((one) => one !== execution && !one.isDone)
      if (isSame && busy !== undefined && this.isCalm) this.problems.push(`${label} is executed beside ${other}`)
    }
    const { signal } = execution.context
    signal.addEventListener('abort', () => {
      if (String((signal.reason as Error).message).includes('disconnect')) this.#find(label)?.onDisconnected(this.isCalm)
    })
  }

  #find (label: string): Known | undefined {
    return this.known.find((known) => known.label === label)
  }

  #away (how: Outage): void {
    if (this.#outage !== undefined) return
    this.#outage = how
    this.isCalm = false
    if (how === 'hangs') this.plan.hold('*')
    else this.plan[how === 'refuses' ? 'failBefore' : 'failAfter']('*', { times: Infinity })
  }

  #back (): void {
    if (this.#outage === undefined) return
    this.#outage = undefined
    this.plan.heal()
  }

  #say (execution: ScriptedExecution | undefined, ...deltas: readonly string[]): void {
    execution?.text(...deltas).catch(() => {})
  }

  #again ({ spec, run, label }: Known): void {
    this.call(`starting ${label} again`, () => this.engine.start(spec), (result) => {
      if (result.kind !== 'existing') this.problems.push(`a duplicate of ${label} was ${result.kind}`)
      else if (result.run.record.key.id !== run.record.key.id) this.problems.push(`a duplicate of ${label} is another run`)
    })
  }

  #conflict ({ spec, label }: Known): void {
    const other: RunSpec = { ...spec, idempotency: { key: spec.clientId, fingerprint: 'g' } }
    this.call(`starting another ${label}`, () => this.engine.start(other), (result) => {
      if (result.kind !== 'conflict') this.problems.push(`another body of ${label} was ${result.kind}`)
    })
  }

  /** The agent executes what it was allowed to. */
  #act (known: Known, execution: ScriptedExecution | undefined): void {
    for (const decision of execution?.input.resume ?? []) {
      if (decision.kind !== 'confirm' || !decision.approved) continue
      const id = `${known.label} ${decision.toolCallId}`
      if (this.executed.has(id)) continue
      this.executed.set(decision.toolCallId, (this.executed.get(decision.toolCallId) ?? 0) + 1)
      this.executed.set(id, 1)
      execution?.say(...resultOf(decision.toolCallId)).catch(() => {})
    }
  }

  /** Answers whatever the run waits for, once or twice at once. */
  async #answer (known: Known, approved: boolean, twice: boolean): Promise<void> {
    const { spec, run, step } = known
    const open = (await this.memory.interrupts.list(run.record.key)).filter(({ state }) => state === 'open')
    const decisions = open.flatMap(({ pending }: InterruptRecord) => pending.kind === 'input' ? [] : [approved ? approve(pending.toolCall.id) : deny(pending.toolCall.id)])
    if (decisions.length === 0) return
    const input: AgentInput = { messages: [], history: 'append', resume: decisions }
    let resumed = 0
    for (let times = twice ? 2 : 1; times > 0; times--) {
      if (spec.protocol === envelope) {
        const { clientId, label } = this.#name(spec.owner)
        this.start({
          ...spec,
          agent: this.#agentOf(step, label),
          clientId,
          idempotency: { key: clientId, fingerprint: 'f' },
          input,
          onBusySession: 'queue',
          resumes: { interrupts: open.map(({ id }) => id), decisions },
          prepareContext: (context) => { context.attributes.set('label', label) }
        }, label, step)
        continue
      }
      this.call(`resuming ${known.label}`, () => this.engine.resume(run, { ...spec, input, decisions }), ({ kind }) => {
        if (kind !== 'resumed') return
        known.isClosing = false
        if (++resumed > 1) this.problems.push(`${known.label} was resumed twice at once`)
      })
    }
  }

  /** What has to hold at any moment. */
  #look (): void {
    for (const known of this.known) known.look(this.executionOf(known), this.isCalm, (problem) => { this.problems.push(`${known.label} ${problem}`) })
  }
}

function labelOf ({ context }: ScriptedExecution): string {
  return String(context.attributes.get('label'))
}
