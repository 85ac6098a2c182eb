import type { OperationName } from '../operations.ts'
import type { RunKey } from '../run-key.ts'
import type { Connection } from './connection.ts'
import { CORRECT, DUE, TOUCH } from './scripts/index-set.ts'

/** Members looked at in one step. */
const STEP = 100

/** Steps of one call: what is left is for the next one. */
const MAX_STEPS = 10

/** What a look at a member has come to: it is what was looked for, it is due again at `at`, or it has no place in the set any more. */
export type Verdict<Found> =
  | { readonly kind: 'found', readonly found: Found }
  | { readonly kind: 'due', readonly at: number }
  | { readonly kind: 'over' }

/** A member that was looked at, and what its score is to be; absent: it goes. */
export interface Correction {
  readonly member: string
  readonly score: string
  readonly at?: number
}

/**
 * Sorted sets in which runs stand by the time at which somebody has to look at them. They are hints, written before what they point at
 * and never in one step with it: who reads one verifies each member against its run and corrects what differs.
 */
export class IndexSet {
  readonly #connection: Connection

  constructor (connection: Connection) {
    this.#connection = connection
  }

  /** The member is due in `ms` milliseconds. Returns that time, by the store's clock. */
  async touch (operation: OperationName, key: string, ms: number, member: string): Promise<number> {
    return Number(await this.#connection.runTimed(operation, TOUCH, [key], ms, member))
  }

  /** Members that are due and found to be what is looked for, longest ago first, about `limit` of them. A bounded number is looked at. */
  async due<Found> (operation: OperationName, key: string, limit: number, look: (member: string, now: number) => Promise<Verdict<Found>>): Promise<readonly Found[]> {
    const found: Found[] = []
    for (let step = 0; step < MAX_STEPS && found.length < limit; step++) {
      const [time, list] = await this.#connection.runTimed(operation, DUE, [key], found.length, STEP) as [number | string, readonly string[]] // as the script answers
      const members = pairsOf(list)
      const verdicts = await Promise.all(members.map(({ member }) => look(member, Number(time))))
      const corrections: Correction[] = []
      for (const [index, { member, score }] of members.entries()) {
        const verdict = verdicts[index] as Verdict<Found> // one each
        if (verdict.kind === 'found') found.push(verdict.found)
        else corrections.push(verdict.kind === 'due' ? { member, score, at: verdict.at } : { member, score })
      }
      await this.correct(operation, key, corrections)
      if (members.length < STEP) break
    }
    return found.slice(0, limit)
  }

  /** Writes what looks have come to, unless somebody has touched the member since. */
  async correct (operation: OperationName, key: string, corrections: readonly Correction[]): Promise<void> {
    if (corrections.length === 0) return
    await this.#connection.run(operation, CORRECT, [key], ...corrections.flatMap(({ member, score, at }) => [member, score, at ?? '']))
  }
}

/** What `WITHSCORES` answers, as pairs. */
export function pairsOf (list: readonly string[]): readonly { readonly member: string, readonly score: string }[] {
  const pairs: { member: string, score: string }[] = []
  for (let index = 0; index < list.length; index += 2) pairs.push({ member: list[index] as string, score: list[index + 1] as string }) // by twos
  return pairs
}

/** A run as a member: its key, and what else tells it apart. */
export function memberOf ({ owner, protocol, id }: RunKey, ...rest: readonly string[]): string {
  return JSON.stringify([owner.tenant ?? null, owner.id ?? null, protocol, id, ...rest])
}

/** The run a member stands for, and the rest of it. */
export function parseMember (member: string): { readonly key: RunKey, readonly rest: readonly string[] } {
  const [tenant, ownerId, protocol, id, ...rest] = JSON.parse(member) as [string | null, string | null, string, string, ...string[]] // as `memberOf` wrote it
  const owner = { ...tenant !== null && { tenant }, ...ownerId !== null && { id: ownerId } }
  return { key: { owner, protocol, id }, rest }
}
