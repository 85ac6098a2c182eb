import { type Driver } from './driver.ts'
import { type EngineParts } from './parts.ts'
import { type Restarter } from './restarter.ts'
import { within } from './within.ts'

/** How an engine is closed. */
export interface CloseOptions {
  /** Milliseconds for everything that runs. @default 5000 */
  readonly timeoutMs?: number
  /**
   * What runs is interrupted at once, or gets three quarters of the time to finish first, or is left to other nodes where those can
   * begin it again, and interrupted where not. @default 'interrupt'
   */
  readonly running?: 'interrupt' | 'finish' | 'hand-over'
}

/** Of the time to close, what `finish` leaves to the runs. */
const FINISH_PART = 0.75

/** Ends what this node executes within the time; what could not end is given up, so that other nodes may end it at once. */
export async function endAll (parts: EngineParts, restarter: Restarter, starting: ReadonlyMap<string, Promise<unknown>>, { timeoutMs, running }: Required<CloseOptions>): Promise<void> {
  const until = performance.now() + timeoutMs
  if (running === 'finish') await within(Math.floor(timeoutMs * FINISH_PART), settled(parts, starting))
  const leftMs = Math.max(0, Math.floor(until - performance.now()))
  await within(leftMs, interrupted(parts, starting, async (driver) => {
    if (running === 'hand-over' && await restarter.mayRestart(driver)) await handOver(parts, [driver])
    else await interrupt(driver, leftMs)
  }))
  await handOver(parts, [...parts.shelf.drivers].filter(({ isActive }) => isActive))
}

async function settled ({ shelf }: EngineParts, starting: ReadonlyMap<string, Promise<unknown>>): Promise<void> {
  await Promise.allSettled(starting.values())
  await Promise.all([...shelf.drivers].map(async (driver) => { if (driver.isActive) await driver.settled() }))
}

async function interrupted ({ shelf }: EngineParts, starting: ReadonlyMap<string, Promise<unknown>>, end: (driver: Driver) => Promise<void>): Promise<void> {
  await Promise.allSettled(starting.values())
  await Promise.all([...shelf.drivers].map(end))
}

async function interrupt (driver: Driver, graceMs: number): Promise<void> {
  if (driver.isActive) {
    // Half the time for the agents, half for the store and the readers.
    driver.end({ kind: 'interrupted', why: 'shutdown' }, Math.floor(graceMs / 2))
    await driver.settled()
  }
  // What waits goes on elsewhere or not at all.
  await driver.agents.close()
}

/** Gives runs up at once, so that other nodes may end them, or begin them again. */
async function handOver ({ store, logger }: EngineParts, drivers: readonly Driver[]): Promise<void> {
  for (const driver of drivers) driver.abandon()
  const released = await Promise.allSettled(drivers.map(({ record }) => store.leases.release(record.key, record.fence)))
  for (const result of released) {
    if (result.status === 'rejected') logger.warn({ err: result.reason }, 'a lease could not be given back; it runs out by itself')
  }
}
