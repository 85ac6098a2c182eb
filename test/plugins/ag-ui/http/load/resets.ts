// Five thousand clients that connect and are reset, and what is left of them.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type Agent } from '../../../../../lib/agent/index.ts'
import { memoryStore } from '../../../../../lib/stores/index.ts'
import { request, serveApp } from '../../../../helpers/ag-ui-app.ts'
import { leftBy } from '../../../../helpers/leaks.ts'

const RESETS = 5_000
const AT_ONCE = 25

const listeners = new Set<AbortSignal>()
const counts = { running: 0 }
const agent: Agent = {
  name: 'idle',
  async * stream (_input, { signal }) {
    counts.running++
    listeners.add(signal)
    try {
      yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x'.repeat(100) }
      await new Promise((resolve, reject) => { signal.addEventListener('abort', () => { reject(signal.reason) }, { once: true }) })
    } finally {
      counts.running--
      listeners.delete(signal)
    }
  }
}

const store = memoryStore({ endedTtlMs: 0, sweepMs: 50, maxKv: 100 })
const server = await serveApp({ teardown () {} }, { agent, store, replay: { ttlMs: 0 }, cancelGraceMs: 1_000 })
server.app.log.level = 'silent'

let next = 0
/** Connects, reads the first frames, and drops the connection with a reset. */
async function reset (): Promise<void> {
  const id = String(next++)
  const body = JSON.stringify(request({ threadId: id, runId: id }))
  const socket = connect(server.port, '127.0.0.1')
  socket.write(`POST /agui/run HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  for (let text = ''; !text.includes('TEXT_MESSAGE_CONTENT');) text += String((await once(socket, 'data'))[0])
  const closed = once(socket, 'close')
  socket.resetAndDestroy()
  await closed
}

async function batch (count: number): Promise<void> {
  for (let done = 0; done < count; done += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, reset))
}

const leftovers = await leftBy(RESETS, {
  emitters: [server.app.server],
  serve: batch,
  async settle () {
    for (let waited = 0; counts.running > 0 && waited < 200; waited++) await delay(10)
    // Past the store's sweep and the bus's own clock, twice.
    await delay(1_000)
  }
})
const connections = await new Promise<number>((resolve, reject) => { server.app.server.getConnections((error, count) => { if (error === null) resolve(count); else reject(error) }) })
console.log(JSON.stringify({
  resets: RESETS,
  running: counts.running,
  connections,
  signals: listeners.size,
  runs: (await store.index.list({}, { limit: 1_000 })).runs.length,
  ...leftovers
}))
process.exit(0)
