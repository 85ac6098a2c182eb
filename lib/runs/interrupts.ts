import { pendingId, type AgentEventOf, type Decision, type Pending } from '../agent/index.ts'
import {
  type Answer, type Claimant, type InterruptRecord, type InterruptStore, type JsonValue, type NewInterrupt, type RunKey
} from '../stores/index.ts'
import { OUTCOME_UNKNOWN } from './errors.ts'
import { insist } from './insist.ts'
import { type InterruptProblem } from './spec.ts'

/** A pending request with the calls that were announced beside it and still lack their result (R21). */
type PausedPending = Pending & { readonly openCalls?: readonly string[] }

/** What a pause becomes in the store. `openCalls`: tool calls that were announced and still lack their result (R21). */
export function newInterrupt (pending: Pending, id: string, openCalls: readonly string[], now: number, ttlMs: number): NewInterrupt {
  const expiresAt = expiryOf(pending, now, ttlMs)
  return {
    id,
    kind: pending.kind,
    pending: openCalls.length > 0 ? { ...pending, openCalls } as PausedPending : pending,
    createdAt: now,
    ...expiresAt !== undefined && { expiresAt }
  }
}

/** Tool calls that may get their result in the execution that answers these interrupts. */
export function knownCallsOf (records: readonly NewInterrupt[]): Set<string> {
  const calls = new Set<string>()
  for (const record of records) {
    const pending: PausedPending = record.pending
    if (pending.kind !== 'input') calls.add(pending.toolCall.id)
    for (const call of pending.openCalls ?? []) calls.add(call)
  }
  return calls
}

/** The answer that a decision gives to an interrupt, or nothing when it is about another one. */
export function answerOf (record: InterruptRecord, decisions: readonly Decision[]): Answer | undefined {
  const id = pendingId(record.pending)
  const decision = decisions.find((candidate) => decisionId(candidate) === id)
  if (decision === undefined) return undefined
  return { id: record.id, decision: decision as unknown as JsonValue, cancels: isCancelling(decision) }
}

/** What is wrong with naming `ids` as answers to `open`: exactly the open ones have to be named, each once (AG-UI 20.5). */
export function checkNamed (open: readonly InterruptRecord[], ids: readonly string[]): InterruptProblem | undefined {
  const problem = (kind: InterruptProblem['kind'], missing: readonly string[], wrong: readonly string[]): InterruptProblem => ({ kind, open, missing, ids: wrong })
  const openIds = open.map(({ id }) => id)
  if (ids.length === 0) return open.length === 0 ? undefined : problem('unanswered', openIds, [])
  if (open.length === 0) return problem('none-open', [], ids)
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index)
  if (twice.length > 0) return problem('duplicate', [], twice)
  const missing = openIds.filter((id) => !ids.includes(id))
  const unknown = ids.filter((id) => !openIds.includes(id))
  if (missing.length + unknown.length > 0) return problem('mismatch', missing, unknown)
  return undefined
}

/** Milliseconds for which claims that came to nothing are tried to be opened again. */
const RELEASE_PATIENCE_MS = 500

/** What claiming needs. */
export interface ClaimPorts {
  readonly interrupts: InterruptStore
  /**
   * Nobody can say whether the claims stand: the claimant keeps its lease and its record, so that whoever ends it when the lease has
   * run out gives them up (R21).
   */
  onUnknown (): void
}

/**
 * The interrupts that an execution answers, claimed by it and by nobody else (R21). What the agent did with each is written
 * before its next event; what is not known at the end is written as `OUTCOME_UNKNOWN` and never done again.
 */
export class Claims {
  readonly records: readonly InterruptRecord[]
  /** The run that they belong to. */
  readonly key: RunKey
  readonly #ports: ClaimPorts
  readonly #claimant: Claimant
  /** Claimed and without an outcome, by tool call or request id. */
  readonly #open = new Map<string, string>()
  #isGiven = false

  private constructor (ports: ClaimPorts, key: RunKey, claimant: Claimant, records: readonly InterruptRecord[]) {
    this.#ports = ports
    this.key = key
    this.#claimant = claimant
    this.records = records
    for (const record of records) this.#open.set(pendingId(record.pending), record.id)
  }

  /** Claims all of `open`, which belong to the run `key`, or none. Rejects when the store is away. */
  static async take (ports: ClaimPorts, key: RunKey, claimant: Claimant, open: readonly InterruptRecord[], decisions: readonly Decision[]): Promise<Claims | InterruptProblem> {
    const answers: Answer[] = []
    const missing: string[] = []
    for (const record of open) {
      const answer = answerOf(record, decisions)
      if (answer === undefined) missing.push(record.id)
      else answers.push(answer)
    }
    if (missing.length > 0) return { kind: 'mismatch', open, missing, ids: [] }
    const result = await ports.interrupts.claim(key, claimant, answers).catch(async (error: unknown) => {
      // It may have been done all the same.
      await release(ports, key, claimant, answers.map(({ id }) => id))
      throw error
    })
    switch (result.kind) {
      case 'claimed': return new Claims(ports, key, claimant, result.records)
      case 'expired': return { kind: 'expired', open, missing: [], ids: idsIn(result.records, 'expired') }
      case 'taken': return { kind: 'taken', open, missing: [], ids: result.records.filter(({ state }) => state !== 'open' && state !== 'expired').map(({ id }) => id) }
      case 'missing': return { kind: 'taken', open, missing: [], ids: result.ids }
      case 'fenced': return { kind: 'taken', open, missing: [], ids: answers.map(({ id }) => id) }
    }
  }

  /**
   * The writing of an outcome, where a tool's result is that of an approved call: to be done before anything else happens.
   * What it returns rejects when the store is away, and may be called again.
   */
  outcomeOf ({ toolCallId, state }: AgentEventOf<'TOOL_RESULT_END'>): (() => Promise<void>) | undefined {
    const id = this.#open.get(toolCallId)
    return id === undefined
      ? undefined
      : async () => {
        await this.#write(id, { state })
        this.#open.delete(toolCallId)
      }
  }

  /** The agent is about to be given the decisions: from here on nobody can say that nothing was done. */
  given (): void {
    this.#isGiven = true
  }

  /**
   * Writes what became of the rest: consumed by an execution that ended well, unknown otherwise; open again where the agent was never asked. Rejects
   * when the store is away.
   */
  async finishRest (endedWell: boolean): Promise<void> {
    if (!this.#isGiven) {
      await this.#ports.interrupts.release(this.key, this.#claimant, [...this.#open.values()])
      this.#open.clear()
    }
    for (const [call, id] of [...this.#open]) {
      await this.#write(id, { state: endedWell ? 'consumed' : OUTCOME_UNKNOWN })
      this.#open.delete(call)
    }
  }

  /** Opens them again: nothing was given to the agent. Never rejects. */
  async release (): Promise<void> {
    await release(this.#ports, this.key, this.#claimant, this.records.map(({ id }) => id))
  }

  async #write (id: string, outcome: JsonValue): Promise<void> {
    const { interrupts } = this.#ports
    await interrupts.finish(this.key, this.#claimant, id, outcome)
  }
}

async function release ({ interrupts, onUnknown }: ClaimPorts, key: RunKey, claimant: Claimant, ids: readonly string[]): Promise<void> {
  try {
    await insist(() => interrupts.release(key, claimant, ids), RELEASE_PATIENCE_MS)
  } catch {
    // The store is away, which whoever claims is told by the error that led here.
    onUnknown()
  }
}

function expiryOf (pending: Pending, now: number, ttlMs: number): number | undefined {
  const asked = pending.kind === 'input' ? pending.request.expiresAt : pending.toolCall.metadata?.expiresAt
  const askedAt = typeof asked === 'string' ? Date.parse(asked) : NaN
  const limit = ttlMs > 0 ? now + ttlMs : undefined
  if (Number.isNaN(askedAt)) return limit
  return limit === undefined ? askedAt : Math.min(askedAt, limit)
}

function decisionId (decision: Decision): string {
  return decision.kind === 'input' ? decision.requestId : decision.toolCallId
}

function isCancelling (decision: Decision): boolean {
  switch (decision.kind) {
    case 'confirm': return !decision.approved
    case 'result': return decision.state === 'interrupted'
    case 'input': return decision.status === 'cancelled'
  }
}

function idsIn (records: readonly InterruptRecord[], state: InterruptRecord['state']): string[] {
  return records.filter((record) => record.state === state).map(({ id }) => id)
}
