import { setTimeout as sleep } from 'node:timers/promises'
import { type PublishPlan } from './messages.ts'
import { stampNow } from './payload.ts'
import { type Endpoint } from './peer.ts'

/** Publishes the plan's events to the topic and resolves with their number, less than planned when time ran out. */
export async function publish (endpoint: Endpoint, plan: PublishPlan): Promise<number> {
  const deadline = performance.now() + plan.boundMs
  let published = 0
  while (published < plan.events) {
    const due = performance.now() + plan.intervalMs
    for (let i = 0; i < plan.batch && published < plan.events; i++) {
      const sent = endpoint.publish(stampNow())
      // A writer that waits for its slowest reader may wait for ever.
      if (sent !== undefined && !(await settlesBefore(sent, deadline))) return published
      published++
    }
    if (performance.now() > deadline) return published
    await sleep(Math.max(0, due - performance.now()))
  }
  return published
}

async function settlesBefore (sent: Promise<void>, deadline: number): Promise<boolean> {
  const timeout = new AbortController()
  const late = sleep(Math.max(1, deadline - performance.now()), false, { signal: timeout.signal })
  late.catch(() => {}) // Aborted below: the event was sent in time.
  try {
    return await Promise.race([sent.then(() => true), late])
  } finally {
    timeout.abort()
  }
}
