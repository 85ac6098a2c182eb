import { type RequestSpec } from './messages.ts'
import { type RunPlan } from './pace.ts'

/** The text of one HTTP request. `index` tells apart the requests of one load. */
export function requestText (request: RequestSpec, index: number): string {
  const { kind, lastEventId, peer, plan, port } = request
  const headers = [`Host: 127.0.0.1:${port}`, 'Accept: text/event-stream']
  if (lastEventId !== undefined) headers.push(`Last-Event-ID: ${lastEventId}`)
  if (plan !== undefined && peer.startsWith('ag-ui')) return post('/agui/run', headers, runInput(plan, index))
  return `GET /${kind}${plan === undefined ? '' : `?${query(plan)}`} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
}

function post (path: string, headers: readonly string[], body: string): string {
  const all = [...headers, 'Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]
  return `POST ${path} HTTP/1.1\r\n${all.join('\r\n')}\r\n\r\n${body}`
}

/** An AG-UI request with the plan as the user's message; each run has a thread of its own. */
function runInput (plan: RunPlan, index: number): string {
  return JSON.stringify({
    threadId: `thread-${index}`,
    runId: `run-${index}`,
    state: {},
    messages: [{ id: 'm1', role: 'user', content: query(plan) }],
    tools: [],
    context: [],
    forwardedProps: {}
  })
}

function query (plan: RunPlan): string {
  return `events=${plan.events}&pace=${plan.pace}`
}
