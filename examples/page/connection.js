// Following a run to its end, whatever happens to the connection in between.
import { readEvents } from './sse.js'

/** Milliseconds without a byte after which a connection counts as dead; the server sends a heartbeat every 15 s. */
const SILENCE_MS = 45_000
const FIRST_WAIT_MS = 400
const LONGEST_WAIT_MS = 8_000

/** The server has answered, and the answer is no: asking again would not help. */
export class Refusal extends Error {}

/**
 * Yields the events of a run as `{ event, id }` until its terminal.
 *
 * A run that has not been heard of is asked for with `POST /run`; doing that again is safe, as the same request is the same run.
 * From its first event on it is rejoined with `POST /connect` and the id of the last event seen, which `run.lastEventId` holds: the server goes on with the next one.
 *
 * @param run `{ threadId, runId, agentId, request?, lastEventId? }`; read anew for each attempt
 * @param {{ signal: AbortSignal, onConnection: (state: 'connecting' | 'open' | 'lost') => void }} options
 * @throws {Refusal} with a sentence for the user
 */
export async function * followRun (run, { signal, onConnection }) {
  for (let failures = 0; ; failures++) {
    onConnection(failures === 0 ? 'connecting' : 'lost')
    if (failures > 0) await backOff(failures, signal)
    const silence = new AbortController()
    let timer
    const heard = () => {
      clearTimeout(timer)
      timer = setTimeout(() => silence.abort(), SILENCE_MS)
    }
    try {
      heard()
      const response = await open(run, AbortSignal.any([signal, silence.signal]))
      onConnection('open')
      for await (const { id, data } of readEvents(response.body, heard)) {
        failures = 0
        const event = JSON.parse(data)
        yield { event, id }
        if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') return
      }
      // The stream has ended without its terminal: it was cut, and goes on elsewhere.
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof Refusal) throw error
      // No network, no server, or a server on its way down or up: try again.
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Asks for JSON; with a body by POST. @throws {Refusal} or what fetch() throws when the server cannot be reached */
export async function askJson (path, body, signal) {
  const response = await fetch(path, { signal, ...body !== undefined && posted(body) })
  if (!response.ok) throw await refusalOf(response)
  return await response.json()
}

/** Waits before another attempt: longer each time, never the same for all pages, and not at all once the network is back. */
export function backOff (failures, signal) {
  const wait = Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), LONGEST_WAIT_MS) * (0.75 + Math.random() / 2)
  return new Promise((resolve, reject) => {
    const end = (settle) => () => {
      clearTimeout(timer)
      window.removeEventListener('online', onTime)
      signal.removeEventListener('abort', onAbort)
      settle()
    }
    const onTime = end(resolve)
    const onAbort = end(() => reject(signal.reason))
    const timer = setTimeout(onTime, wait)
    window.addEventListener('online', onTime)
    signal.addEventListener('abort', onAbort)
  })
}

async function open (run, signal) {
  const { threadId, runId, agentId, request, lastEventId } = run
  const isNew = request !== undefined && lastEventId === undefined
  const agent = encodeURIComponent(agentId)
  const response = isNew
    ? await fetch(`/agui/run/${agent}`, { signal, ...posted(request) })
    : await fetch(`/agui/connect/${agent}`, { signal, ...posted({ threadId, ...runId !== undefined && { runId } }, lastEventId !== undefined && { 'last-event-id': lastEventId }) })
  if (response.ok) return response
  const refusal = await refusalOf(response)
  // Somebody in front of the server, or the server itself, says that it is not there now.
  if ([502, 503, 504].includes(response.status)) throw new Error(refusal.message)
  throw refusal
}

function posted (body, headers) {
  return { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}

/** What the server says is wrong, in its own words where it has any. */
async function refusalOf (response) {
  const { error, message } = await response.json().catch(() => ({}))
  return new Refusal(error?.message ?? message ?? `The server answered ${response.status} ${response.statusText}.`)
}
