import { setImmediate as macrotask, setTimeout as sleep } from 'node:timers/promises'
import { stampNow, UNSTAMPED } from './payload.ts'

/** How a run's events come: as fast as they can be made, one a macrotask (tokens from a network), or 20 a second. */
export type Pace = 'burst' | 'macrotask' | 'interval'

export interface RunPlan {
  readonly events: number
  readonly pace: Pace
}

const INTERVAL_MS = 50

/** Spreads the streams over the interval, so that they do not all fire in one tick. */
let phase = 0

/** Pushes a run's events by callback: the cheapest agent there is. `emit` gets the event's time stamp. */
export function drive (plan: RunPlan, emit: (stamp: string) => void, end: () => void): void {
  if (plan.pace === 'burst') {
    for (let i = 0; i < plan.events; i++) emit(UNSTAMPED)
    end()
  } else if (plan.pace === 'macrotask') {
    driveByMacrotask(plan.events, emit, end)
  } else {
    driveByInterval(plan.events, emit, end)
  }
}

function driveByMacrotask (events: number, emit: (stamp: string) => void, end: () => void): void {
  let left = events
  function next (): void {
    emit(UNSTAMPED)
    if (--left > 0) setImmediate(next)
    else end()
  }
  setImmediate(next)
}

function driveByInterval (events: number, emit: (stamp: string) => void, end: () => void): void {
  let left = events
  phase = (phase + 1) % INTERVAL_MS
  setTimeout(() => {
    const timer = setInterval(() => {
      emit(stampNow())
      if (--left > 0) return
      clearInterval(timer)
      end()
    }, INTERVAL_MS)
  }, phase)
}

/** The same run for writers that return a promise: each `send` is awaited, which is how they tell backpressure. */
export async function feed (plan: RunPlan, send: (stamp: string) => Promise<void>): Promise<void> {
  if (plan.pace === 'interval') {
    phase = (phase + 1) % INTERVAL_MS
    await sleep(phase)
  }
  for (let i = 0; i < plan.events; i++) {
    if (plan.pace === 'macrotask') await macrotask()
    else if (plan.pace === 'interval') await sleep(INTERVAL_MS)
    await send(plan.pace === 'interval' ? stampNow() : UNSTAMPED)
  }
}

/** The same run as an async generator of what `make` makes of a stamp, which is how an agent is mostly written. */
export async function * generate<T> (plan: RunPlan, make: (stamp: string) => T): AsyncGenerator<T, void, undefined> {
  if (plan.pace === 'interval') {
    phase = (phase + 1) % INTERVAL_MS
    await sleep(phase)
  }
  for (let i = 0; i < plan.events; i++) {
    if (plan.pace === 'macrotask') await macrotask()
    else if (plan.pace === 'interval') await sleep(INTERVAL_MS)
    yield make(plan.pace === 'interval' ? stampNow() : UNSTAMPED)
  }
}

/** Reads the plan a run's request carries. */
export function parsePlan (query: URLSearchParams): RunPlan {
  const pace = query.get('pace')
  if (pace !== 'burst' && pace !== 'macrotask' && pace !== 'interval') throw new Error(`Unknown pace: ${pace}`)
  return { events: Number(query.get('events')), pace }
}
