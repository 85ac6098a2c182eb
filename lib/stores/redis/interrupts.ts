import type { JsonValue } from '../../agent/json.ts'
import type { Answer, Claimant, ClaimResult, FinishResult, InterruptRecord, InterruptStore, NewInterrupt } from '../interrupts.ts'
import type { Owner, RunKey } from '../run-key.ts'
import { frozen } from './frozen.ts'
import { pairsOf, parseMember } from './index-set.ts'
import type { RedisParts } from './parts.ts'
import { ABANDON, CLAIM, FINISH, GIVE_BACK, LIST } from './scripts/interrupts.ts'
import { DROP_DUE } from './scripts/index-set.ts'

/** Runs of a session that are read in one step. */
const STEP = 50

/** An interrupt as a script answers it: `INTERRUPT_FIELDS`, then its id. */
type Seen = readonly (string | null)[]

/** {@link InterruptStore} in Redis: a hash a run, and a sorted set a session of the runs that may wait. */
export class RedisInterrupts implements InterruptStore {
  readonly #parts: RedisParts

  constructor (parts: RedisParts) {
    this.#parts = parts
  }

  async list (key: RunKey): Promise<readonly InterruptRecord[]> {
    return await this.#list('interrupts.list', key)
  }

  async open (owner: Owner, protocol: string, session: string): Promise<readonly InterruptRecord[]> {
    const { connection, keys } = this.#parts
    const set = keys.waiting(owner, protocol, session)
    const open: InterruptRecord[] = []
    const over: string[] = []
    for (let from = 0; ; from += STEP) {
      const members = pairsOf(await connection.command('interrupts.open', 'ZRANGE', set, from, from + STEP - 1, 'WITHSCORES') as readonly string[]) // as ZRANGE answers
      const lists = await Promise.all(members.map(({ member }) => this.#list('interrupts.open', parseMember(member).key)))
      for (const [index, { member, score }] of members.entries()) {
        const list = lists[index] ?? []
        open.push(...list.filter(({ state }) => state === 'open' || state === 'expired'))
        // One that is claimed may be given back.
        if (!list.some(({ state }) => state === 'open' || state === 'expired' || state === 'claimed')) over.push(member, score)
      }
      if (members.length < STEP) break
    }
    if (over.length > 0) await connection.runTimed('interrupts.open', DROP_DUE, [set], ...over)
    return open.sort((a, b) => a.createdAt - b.createdAt)
  }

  async claim (key: RunKey, claimant: Claimant, answers: readonly Answer[]): Promise<ClaimResult> {
    const { connection } = this.#parts
    const answer = await connection.runTimed(
      'interrupts.claim', CLAIM, this.#keys(key), claimant.run === key.id ? 1 : 0, JSON.stringify(claimant.run), claimant.fence,
      ...answers.flatMap(({ id, decision, cancels }) => [JSON.stringify(id), JSON.stringify(decision ?? null), cancels === true ? 1 : 0])
    ) as ['missing', readonly string[]] | ['fenced', string] | ['claimed' | 'taken' | 'expired', string, readonly Seen[]] // as the script answers
    switch (answer[0]) {
      case 'missing': return { kind: 'missing', ids: answer[1].map((id) => JSON.parse(id) as string) }
      case 'fenced': return { kind: 'fenced', fence: Number(answer[1]) }
      default: return { kind: answer[0], records: answer[2].map((seen) => recordOf(key, answer[1], seen)) }
    }
  }

  async finish (key: RunKey, claimant: Claimant, id: string, outcome: JsonValue): Promise<FinishResult> {
    const { connection } = this.#parts
    const answer = await connection.runTimed(
      'interrupts.finish', FINISH, this.#keys(key), JSON.stringify(claimant.run), claimant.fence, JSON.stringify(id), JSON.stringify(outcome)
    ) as ['missing'] | ['ok' | 'lost', string, Seen] // as the script answers
    return answer[0] === 'missing' ? { kind: 'missing' } : { kind: answer[0], record: recordOf(key, answer[1], answer[2]) }
  }

  async release (key: RunKey, claimant: Claimant, ids: readonly string[]): Promise<void> {
    const { connection } = this.#parts
    await connection.run('interrupts.release', GIVE_BACK, this.#keys(key), JSON.stringify(claimant.run), claimant.fence, ...ids.map((id) => JSON.stringify(id)))
  }

  async abandon (key: RunKey, successor: Claimant): Promise<readonly InterruptRecord[]> {
    const { connection } = this.#parts
    const answer = await connection.run('interrupts.abandon', ABANDON, this.#keys(key), JSON.stringify(successor.run), successor.fence)
    return recordsOf(key, answer)
  }

  async #list (operation: 'interrupts.list' | 'interrupts.open', key: RunKey): Promise<readonly InterruptRecord[]> {
    return recordsOf(key, await this.#parts.connection.runTimed(operation, LIST, this.#keys(key)))
  }

  #keys (key: RunKey): readonly string[] {
    const [record, , interrupts] = this.#parts.keys.run(key)
    return [record, interrupts]
  }
}

/** What a script answers that answers session and interrupts, in the order in which they were opened. */
function recordsOf (key: RunKey, answer: unknown): readonly InterruptRecord[] {
  if (answer === null) return []
  const [session, seen] = answer as [string, readonly Seen[]] // as the scripts answer
  return [...seen].sort((a, b) => Number(a[2]) - Number(b[2])).map((one) => recordOf(key, session, one))
}

function recordOf (key: RunKey, session: string, [document, state, , , decision, run, fence, at, outcome]: Seen): InterruptRecord {
  const base = JSON.parse(document ?? 'null') as NewInterrupt // as `commit` wrote it
  return frozen({
    ...base,
    run: key,
    session: JSON.parse(session) as string,
    state: state as InterruptRecord['state'],
    ...decision != null && { decision: JSON.parse(decision) as JsonValue },
    ...run != null && { claim: { run: JSON.parse(run) as string, fence: Number(fence), at: Number(at) } },
    ...outcome != null && { outcome: JSON.parse(outcome) as JsonValue }
  })
}
