// Thousands of runs that end, are aborted, left, refused or cut off, and what is left of them.
import { getEventListeners, once, setMaxListeners } from 'node:events'
import { Agent, createServer } from 'node:http'
import { type AddressInfo } from 'node:net'
import { createRuntimeContext, RunInterrupted } from '../../../../../lib/agent/index.ts'
import { remoteAgent } from '../../../../../plugins/agent-protocol/client/index.ts'
import { leftBy } from '../../../../helpers/leaks.ts'

const RUNS = 1_500
const TOGETHER = 25

/** What becomes of a run; the service is told in its input. */
const KINDS = ['ends', 'aborts', 'leaves', 'fails', 'cut', 'refused'] as const

const delta = (seq: number, text: string): string => `id: ${seq}\ndata: {"seq":${seq},"type":"TEXT_DELTA","taskId":"t","text":"${text}"}\n\n`
/** Keeps nothing of a task but what is to become of it. */
const kinds = new Map<string, string>()
const cutOnce = new Set<string>()

const server = createServer((request, response) => {
  const [, , id = '', verb = ''] = (request.url ?? '').split('?')[0]?.split('/') ?? []
  const kind = kinds.get(id)
  if (request.method === 'POST' && id === '') {
    let body = ''
    request.on('data', (chunk: Buffer) => { body += chunk.toString() })
    request.on('end', () => {
      const { task_id: taskId, input } = JSON.parse(body) as { task_id: string, input: string }
      if (input === 'refused') return response.writeHead(403).end()
      kinds.set(taskId, input)
      response.end('{"status":"pending"}')
    })
  } else if (verb === 'events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (kind === 'cut' && !cutOnce.has(id)) {
      cutOnce.add(id)
      response.write(delta(1, 'a'))
      setImmediate(() => { request.socket.destroy() })
      return
    }
    const after = Number(new URL(request.url ?? '', 'http://x').searchParams.get('from_seq'))
    response.write([1, 2].filter((seq) => seq > after).map((seq) => delta(seq, 'a')).join(''))
    if (kind === 'ends' || kind === 'cut') response.end('id: 3\ndata: {"seq":3,"type":"STATUS","status":"success","result":"aa"}\n\n')
    if (kind === 'fails') response.end('id: 3\ndata: {"seq":3,"type":"RUN_ERROR","error":"no"}\n\n')
  } else if (verb === 'cancel') {
    response.end()
  } else {
    response.writeHead(kind === undefined ? 404 : 200).end(kind === undefined ? '{"error":"task not found"}' : '{"status":"running"}')
  }
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

const connections = new Agent({ keepAlive: true, maxSockets: TOGETHER * 2 })
const agent = remoteAgent({
  url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, name: 'far', connections, retryBaseMs: 1, retryMaxMs: 2, headers: async () => ({ authorization: 'x' })
})
/** Outlives all runs: what they leave on it would stay. */
const { signal } = new AbortController()
setMaxListeners(0, signal)
const outcomes: Record<string, number> = {}

async function run (n: number): Promise<void> {
  const kind = KINDS[n % KINDS.length] ?? 'ends'
  const own = new AbortController()
  const input = { messages: [{ id: 'u', role: 'USER' as const, content: [{ type: 'text' as const, text: kind }] }], history: 'append' as const }
  let outcome = 'ended'
  try {
    for await (const event of agent.stream(input, createRuntimeContext({ sessionId: 's', runId: `run-${n}`, signal: kind === 'aborts' ? own.signal : signal }))) {
      if (event.type !== 'TEXT_BLOCK_DELTA') continue
      if (kind === 'aborts') own.abort(new RunInterrupted('user'))
      if (kind === 'leaves') {
        outcome = 'left'
        break
      }
    }
  } catch (error) {
    outcome = String((error as { code?: string }).code ?? (error as Error).name)
  }
  outcomes[`${kind} ${outcome}`] = (outcomes[`${kind} ${outcome}`] ?? 0) + 1
}

let runs = 0
async function serve (count: number): Promise<void> {
  let left = count
  await Promise.all(Array.from({ length: TOGETHER }, async () => { while (left-- > 0) await run(runs++) }))
}

const leftovers = await leftBy(RUNS, {
  emitters: [server],
  serve,
  async settle () {
    kinds.clear()
    cutOnce.clear()
    connections.destroy()
    const count = (): Promise<number> => new Promise((resolve) => { server.getConnections((_, open) => { resolve(open) }) })
    while (await count() > 0) await new Promise(setImmediate)
  }
})
console.log(JSON.stringify({ outcomes, signalListeners: getEventListeners(signal, 'abort').length, ...leftovers }))
process.exit(0)
