import { RunEngine } from '../../../../lib/runs/index.ts'
import { envelope } from '../../../helpers/envelope-protocol.ts'
import { ledger } from '../../../helpers/ledger-protocol.ts'
import { type Outage } from './steps.ts'
import { LEASE_MS, STORE_TIMEOUT_MS, type World } from './world.ts'

/** Within this many milliseconds a run that is stopped, or left, is over: what has to be stored first is given up before. */
const END_LIMIT_MS = 15_000

/** The store is there again, and everything comes to its end: calls, runs that were left, and at last all runs, which are stopped. */
export async function settle (world: World): Promise<void> {
  const { clock, engine } = world
  world.recover()
  await world.finishCalls()
  for (const { label, readers, abandonments } of world.known) {
    for (const { listener } of readers) listener.takeOn()
    for (const { isOver, settled } of abandonments) {
      // R18. Somebody who came back may have come in time or not.
      if (!isOver) await clock.until(settled, END_LIMIT_MS, `${label}, which everybody has left, ends`)
    }
  }
  for (const { label, run } of world.known) {
    await clock.until(engine.stop(run), END_LIMIT_MS, `stopping ${label}`)
    await clock.until(run.ended, END_LIMIT_MS, `${label} ends`)
  }
  // What was given up, and what a failed start has left, is ended when its lease has run out.
  await clock.advance(4 * LEASE_MS)
}

/** The store goes away for good: the node's runs end without it, and another node with the store ends what is left of them there. */
export async function die (world: World, how: Outage): Promise<RunEngine> {
  const { clock, engine, memory } = world
  const executed = world.known.filter(({ run: { record } }) => record.state === 'running')
  world.lose(how)
  await world.finishCalls()
  for (const known of executed) {
    for (const { listener } of known.readers) listener.takeOn()
    const execution = world.executionOf(known)
    execution?.text('x').catch(() => {})
    // What follows a question is held back (R3): such an agent has nothing to store until it returns.
    if (known.isClosing) execution?.finish()
  }
  for (const { label, run, watcher } of executed) {
    const { end } = await clock.until(run.settled(), END_LIMIT_MS, `${label} ends without its store`)
    const last = watcher.heard.at(-1)
    const isTold = last?.kind === 'line' && last.data.includes('STORE_UNAVAILABLE') && watcher.end === 'complete'
    // R9: its lease has not run out yet, so that its caller may be told.
    if (end?.code !== 'STORE_UNAVAILABLE' || !isTold) world.problems.push(`${label} ended without its store as ${JSON.stringify(end)}, and told ${JSON.stringify(last)}`)
  }
  for (const { label, run } of world.known) {
    await clock.until(engine.stop(run).catch(() => {}), END_LIMIT_MS, `stopping ${label} without its store`)
    const { state } = run.record
    if (state === 'running' || state === 'pending') world.problems.push(`${label} is still ${state}`)
  }
  await clock.until(engine.close({ timeoutMs: 1_000 }), 1_000 + 2 * STORE_TIMEOUT_MS, 'closing without a store')
  world.recover()

  const survivor = new RunEngine({ store: { ...memory, isVolatile: false }, leaseMs: LEASE_MS })
  survivor.register(ledger)
  survivor.register(envelope)
  await clock.advance(4 * LEASE_MS)
  return survivor
}
