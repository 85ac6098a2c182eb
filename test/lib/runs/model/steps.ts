import fc from 'fast-check'
import { type DisconnectPolicy, type RunSpec } from '../../../../lib/runs/index.ts'
import { type OperationName } from '../../../../lib/stores/index.ts'

/** What is done to a run that is known already. `run` picks it among those known. */
export type RunStepKind =
  | 'again' | 'conflict' | 'pry'
  | 'own' | 'connect' | 'leave' | 'leaveOwn' | 'stall' | 'takeOn'
  | 'read' | 'text' | 'long' | 'many' | 'ask' | 'result' | 'finish' | 'fail'
  | 'stop' | 'stopSession' | 'turn'

/** How a store is away: calls fail at once, take effect and fail, or get no answer. */
export type Outage = 'refuses' | 'forgets' | 'hangs'

/** One thing that happens to an engine. */
export type Step =
  | StartStep
  | { readonly kind: RunStepKind, readonly run: number }
  | { readonly kind: 'answer', readonly run: number, readonly approved: boolean, readonly twice: boolean }
  | { readonly kind: 'wait', readonly ms: number }
  | { readonly kind: 'fault', readonly operation: OperationName, readonly after: boolean, readonly times: number }
  | { readonly kind: 'outage', readonly how: Outage }
  | { readonly kind: 'back' }

export interface StartStep {
  readonly kind: 'start'
  readonly owner: number
  readonly session: number
  readonly busy: RunSpec['onBusySession']
  readonly policy: DisconnectPolicy
  readonly isEnvelope: boolean
  readonly timeoutMs: number
  readonly writeTimeoutMs: number
  /** Little is kept for those who come back. */
  readonly isShort: boolean
  /** A reader on another node is connected for as long as the run lives. */
  readonly isReadElsewhere: boolean
  /** `made`: an instance of its own; `restored`: one that another node could make again. */
  readonly agent: 'shared' | 'made' | 'restored'
}

/** Transient faults of whatever a run needs after its start. */
const FAULTS: readonly OperationName[] = [
  'log.append', 'runs.commit', 'runs.update', 'leases.renew', 'leases.acquire', 'gates.leave', 'gates.renew', 'gates.enter', 'interrupts.finish', 'interrupts.claim',
  'index.add', 'runs.create', 'log.saveFold', 'presence.nodes', 'nodes.bind'
]

const KINDS: readonly RunStepKind[] = [
  'again', 'conflict', 'pry', 'own', 'own', 'connect', 'connect', 'leave', 'leave', 'leaveOwn', 'stall', 'stall', 'takeOn', 'read', 'text', 'text', 'long', 'long', 'long', 'many',
  'ask', 'ask', 'result', 'result', 'finish', 'finish', 'fail', 'stop', 'stopSession', 'turn', 'turn'
]

const run = fc.nat(3)

const start: fc.Arbitrary<StartStep> = fc.record({
  kind: fc.constant('start' as const),
  owner: fc.nat(2),
  session: fc.nat(1),
  busy: fc.constantFrom('reject' as const, 'queue' as const, 'supersede' as const),
  policy: fc.constantFrom<DisconnectPolicy>('interrupt', 'interrupt', 'continue', { graceMs: 100 }),
  isEnvelope: fc.boolean(),
  timeoutMs: fc.constantFrom(0, 0, 0, 1_500),
  writeTimeoutMs: fc.constantFrom(1_000, 30_000),
  isShort: fc.boolean(),
  isReadElsewhere: fc.constantFrom(false, false, false, true),
  agent: fc.constantFrom('shared' as const, 'made' as const, 'restored' as const)
})

const healthy: fc.WeightedArbitrary<Step>[] = [
  { weight: 3, arbitrary: start },
  { weight: 20, arbitrary: fc.record({ kind: fc.constantFrom(...KINDS), run }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('answer' as const), run, approved: fc.boolean(), twice: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 30, 150, 1_200, 6_000) }) }
]

const fault: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant('fault' as const), operation: fc.constantFrom(...FAULTS), after: fc.boolean(), times: fc.integer({ min: 1, max: 2 })
})

const outage: fc.Arbitrary<Step> = fc.record({ kind: fc.constant('outage' as const), how: fc.constantFrom<Outage>('refuses', 'forgets', 'hangs') })

/** What happens with a store that is always there. */
export const calmStep: fc.Arbitrary<Step> = fc.oneof(...healthy)

/** With a store that fails now and then. */
export const faultyStep: fc.Arbitrary<Step> = fc.oneof(...healthy, { weight: 3, arbitrary: fault })

/** With a store that goes away and comes back. */
export const stormyStep: fc.Arbitrary<Step> = fc.oneof(
  ...healthy,
  { weight: 1, arbitrary: fault },
  { weight: 2, arbitrary: outage },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: 'back' }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(3_000, 10_000, 20_000) }) }
)
