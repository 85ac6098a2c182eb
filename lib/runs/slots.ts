import { randomUUID } from 'node:crypto'
import { ownerText, type Owner } from '../stores/index.ts'
import { RunLimitError } from './errors.ts'
import { type Gates } from './gate.ts'

/** The session of {@link slotOwner} that holds the tickets. */
const SESSION = 'runs'

/** A run's part of its owner's limit. */
export interface Slot {
  /** Gives it back, once; never rejects. What the store does not take back now runs out with its lease. */
  release (): Promise<void>
}

/** What the slots need. */
export interface SlotsOptions {
  readonly gates: Gates
  /** Runs of one owner that may be queued or under way at once, on all nodes together. */
  readonly maxRuns: number
}

/**
 * Limits the runs that one owner has under way at once, over all nodes that share the store: each holds a ticket in a queue of
 * its owner's that lets `maxRuns` in. A counter would have to be corrected after each crash; a ticket has a lease, so that one whose node is
 * gone, or could not give it back, is free again within `leaseMs`. A run whose node could not renew its
 * ticket for that long goes on, and counts no more. Runs that wait for an answer hold none.
 */
export class Slots {
  readonly #options: SlotsOptions

  constructor (options: SlotsOptions) {
    this.#options = options
  }

  /** Takes a slot. @throws AGT_ERR_RUN_LIMIT when all are taken, AGT_ERR_STORE_UNAVAILABLE */
  async take (owner: Owner): Promise<Slot> {
    const { gates, maxRuns } = this.#options
    const of = slotOwner(owner)
    const id = randomUUID()
    try {
      const ticket = await gates.enterUpTo(maxRuns, of, SESSION, id, null)
      if ('holder' in ticket) throw new RunLimitError(maxRuns)
    } catch (error) {
      // It may have been taken all the same.
      if (!(error instanceof RunLimitError)) gates.withdraw(of, SESSION, id).catch(() => {})
      throw error
    }
    let released: Promise<void> | undefined
    return {
      release: async () => {
        released ??= gates.withdraw(of, SESSION, id).catch(() => {})
        await released
      }
    }
  }
}

/** Nobody's owner key: a principal always has an id. So no session that a client names can be this queue. */
function slotOwner (owner: Owner): Owner {
  return { tenant: `limits ${ownerText(owner)}` }
}
