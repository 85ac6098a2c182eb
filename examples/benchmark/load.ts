import { once } from 'node:events'
import { answerParent, tellParent } from './answering.ts'
import { Connection } from './connection.ts'
import { type LoadCommand, type RequestSpec, type RequestsPlan, type Seen } from './messages.ts'
import { requestText } from './requests.ts'
import { percentile } from './stats.ts'

/** The clients, in a process of their own: plain sockets that count bytes, so that the load is never what limits. */

/** Connections that dial at once; more would overflow the listener's queue and wait for a retransmission. */
const DIALLING = 100

/** Connections that stay open between two commands. */
const held: Connection[] = []
/** Of stamped events, since the last answer. */
const latencies: number[] = []
let lastIndex = 0

answerParent<LoadCommand>(async (command) => {
  switch (command.do) {
    case 'requests': return requests(command.plan)
    case 'open': return open(command.request, command.count, command.stall, command.boundMs)
    case 'await': return awaitEvents(command.events, command.boundMs)
    case 'close': return close()
  }
})
tellParent({ id: 0, value: null })

/** Runs requests to their ends, `inFlight` at a time. */
async function requests (plan: RequestsPlan): Promise<Seen> {
  const startedAt = performance.now()
  const flying = new Set<Connection>()
  let [started, events, incomplete] = [0, 0, 0]
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      incomplete += flying.size + plan.total - started
      started = plan.total
      for (const connection of flying) connection.close()
      resolve()
    }, plan.boundMs)

    function fill (): void {
      while (started < plan.total && flying.size < plan.inFlight) {
        started++
        flying.add(dial(plan.request, false, onChange))
      }
      if (flying.size > 0) return
      clearTimeout(timer)
      resolve()
    }

    function onChange (connection: Connection): void {
      const isDone = connection.isEnded || (plan.until === 'events' && connection.events >= plan.events)
      if (!isDone || !flying.delete(connection)) return
      connection.close()
      events += connection.events
      if (connection.events !== plan.events) incomplete++
      fill()
    }

    fill()
  })
  return seen(events, incomplete, startedAt)
}

/** Opens connections and keeps them; resolves with how many have begun to answer. */
async function open (request: RequestSpec, count: number, stall: boolean, boundMs: number): Promise<number> {
  const deadline = performance.now() + boundMs
  let [dialling, opened] = [0, 0]
  const seenOpen = new Set<Connection>()
  const changes = new EventTarget()
  for (let i = 0; i < count || dialling > 0;) {
    while (i < count && dialling < DIALLING) {
      i++
      dialling++
      held.push(dial(request, stall, (connection) => {
        if (seenOpen.has(connection)) return
        seenOpen.add(connection)
        if (connection.isOpen) opened++
        dialling--
        changes.dispatchEvent(new Event('change'))
      }))
    }
    const timeLeft = deadline - performance.now()
    if (timeLeft <= 0 || !(await changed(changes, timeLeft))) return opened
  }
  return opened
}

async function changed (changes: EventTarget, boundMs: number): Promise<boolean> {
  try {
    await once(changes, 'change', { signal: AbortSignal.timeout(boundMs) })
    return true
  } catch {
    return false // Only the timeout rejects.
  }
}

/** Resolves when each held connection that reads has so many events, or time is up. */
async function awaitEvents (events: number, boundMs: number): Promise<Seen> {
  const startedAt = performance.now()
  const readers = held.filter((connection) => !connection.isStalled)
  while (performance.now() - startedAt < boundMs && readers.some((reader) => reader.events < events && !reader.isEnded)) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return seen(
    readers.reduce((sum, reader) => sum + reader.events, 0),
    readers.filter((reader) => reader.events !== events).length,
    startedAt)
}

function close (): void {
  for (const connection of held) connection.close()
  held.length = 0
  latencies.length = 0
}

function dial (request: RequestSpec, stall: boolean, onChange: (connection: Connection) => void): Connection {
  return new Connection({ port: request.port, request: requestText(request, ++lastIndex), stall, latencies, onChange })
}

function seen (events: number, incomplete: number, startedAt: number): Seen {
  const elapsedMs = performance.now() - startedAt
  if (latencies.length === 0) return { events, incomplete, elapsedMs }
  const sorted = Float64Array.from(latencies).sort()
  latencies.length = 0
  return { events, incomplete, elapsedMs, latency: { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: percentile(sorted, 1) } }
}
