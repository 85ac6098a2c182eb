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
function open (request: RequestSpec, count: number, stall: boolean, boundMs: number): Promise<number> {
  return new Promise((resolve) => {
    const dialling = new Set<Connection>()
    let [started, opened] = [0, 0]
    const timer = setTimeout(finish, boundMs)

    function fill (): void {
      while (started < count && dialling.size < DIALLING) {
        started++
        const connection = dial(request, stall, onChange)
        dialling.add(connection)
        held.push(connection)
      }
      if (dialling.size === 0) finish()
    }

    function onChange (connection: Connection): void {
      if (!dialling.delete(connection)) return
      if (connection.isOpen) opened++
      fill()
    }

    function finish (): void {
      clearTimeout(timer)
      started = count
      resolve(opened)
    }

    fill()
  })
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
