import { type Ownership, type RunRecord } from '../stores/index.ts'
import { type Driver } from './driver.ts'
import { type EngineParts } from './parts.ts'
import { type Run } from './run.ts'
import { type ExecutionSpec } from './spec.ts'
import { takeUp } from './take-up.ts'

/** How often a run is begun again before it counts as what kills its nodes. */
const MAX_RESTARTS = 3

/**
 * Begins a lost run again, if its agent says that the same input may be given to it once more (`capabilities.restartable`): calls `begin`
 * once with what is to be executed and answers true, or answers false, and the run ends as lost. What it throws is tried again
 * when the run's lease has run out.
 */
export type Restart = (record: RunRecord, begin: (spec: ExecutionSpec) => Promise<Run>) => Promise<boolean>

/** Begins lost runs again where their protocol can (R14). */
export class Restarter {
  readonly #parts: EngineParts
  readonly #restarts = new Map<string, Restart[]>()

  constructor (parts: EngineParts) {
    this.#parts = parts
  }

  /** Adds a way to begin a protocol's runs again; the first that can does it. */
  add (protocol: string, restart: Restart): void {
    const others = this.#restarts.get(protocol)
    if (others === undefined) this.#restarts.set(protocol, [restart])
    else others.push(restart)
  }

  /** Whether another node, or a later life of this one, could begin a run again that is executed here. Rejects when the store is away. */
  async mayRestart (driver: Driver): Promise<boolean> {
    const { record, isRestartable } = driver
    return isRestartable && this.#parts.store.isVolatile !== true && this.#restarts.has(record.key.protocol) &&
      record.fence <= MAX_RESTARTS && !await this.#hasPaused(record)
  }

  /** Begins a run that was just taken over again; false where it can not be, and is to be ended. `takenAt`: the monotonic clock before it was taken. */
  async restart (ownership: Ownership, takenAt: number): Promise<boolean> {
    const { record, fence } = ownership
    const restarts = this.#restarts.get(record.key.protocol)
    if (restarts === undefined || fence > 1 + MAX_RESTARTS || await this.#hasPaused(record)) return false
    try {
      for (const restart of restarts) {
        if (await restart(record, (spec) => this.#begin(ownership, takenAt, spec))) return true
      }
      return false
    } catch (error) {
      this.#parts.logger.warn({ err: error, runId: record.key.id }, 'a lost run could not be begun again; it is tried once more when its lease has run out')
      return true
    }
  }

  /** What somebody has answered already is not asked again, and what was done for it not done again. */
  async #hasPaused ({ key, links }: RunRecord): Promise<boolean> {
    return links?.resumes !== undefined || (await this.#parts.store.interrupts.list(key)).length > 0
  }

  async #begin (ownership: Ownership, takenAt: number, spec: ExecutionSpec): Promise<Driver> {
    const { gates, node, shelf, logger, observer } = this.#parts
    const { record } = ownership
    const { key, session, clientId, agent, trace } = record
    const here = shelf.driver(key.id)
    if (here?.isActive === true) {
      // It has lost the run to us, and does not know it yet.
      here.end({ kind: 'lost' }, 0)
      await here.settled()
    }
    const driver = await takeUp(this.#parts, ownership, spec.replay)
    if (driver === undefined) throw new Error('The log of a lost run could not be read.')
    const ticket = await gates.enter(key.owner, session, key.id, { clientId, protocol: key.protocol, node })
    logger.warn({ runId: key.id, protocol: key.protocol, agent }, 'a lost run is begun again')
    driver.begin({
      record,
      takenAt,
      // It had its owner's slot before, which may not have run out yet.
      work: { spec, ticket },
      observer: observer?.starting?.({ id: key.id, protocol: key.protocol, agent, isResumed: true, ...trace !== undefined && { trace } })
    })
    return driver
  }
}
