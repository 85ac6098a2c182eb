// A server of tasks that keeps what it has in a directory and may be killed at any moment. Says its port.
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Fastify from 'fastify'
import { type Agent } from '../../../../../lib/agent/index.ts'
import { lmdbStore } from '../../../../../lib/stores/lmdb/index.ts'
import { agentProtocol, RUNTIME_CONTEXT_ATTRIBUTES_KEY } from '../../../../../plugins/agent-protocol/index.ts'
import { agents } from '../../../../../plugins/agents/index.ts'
import { approving, noted } from '../../../../helpers/approving-agent.ts'

const [directory = ''] = process.argv.slice(2)

/** What was done stands in a file of its own: one line each time, whichever process did it. */
const charge = noted('charge', {
  execute: async ({ amount }, { runtime }) => {
    const { userId, sessionId, attributes } = runtime
    appendFileSync(join(directory, 'done.log'), `${JSON.stringify([amount, userId, sessionId, attributes.get(RUNTIME_CONTEXT_ATTRIBUTES_KEY)])}\n`)
    // The second kind of charge is done, and nobody is told so before the process ends.
    if (amount === 'slow') await new Promise(() => {})
    return 'charged'
  }
})

const slow: Agent = {
  name: 'slow',
  async * stream () {
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'half a sen' }
    await new Promise(() => {})
  }
}

/** Ends in its second life. */
const patient: Agent = {
  name: 'patient',
  capabilities: { restartable: true },
  async * stream () {
    const path = join(directory, 'begun.log')
    appendFileSync(path, 'begun\n')
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'done' }
    if (readFileSync(path, 'utf8') === 'begun\n') await new Promise(() => {})
  }
}

const app = Fastify()
const store = await lmdbStore({ path: join(directory, 'store') })
await app.register(agents, { agents: { clerk: approving([charge]), slow, patient }, defaultAgent: 'clerk', store, leaseMs: 1_000 })
await app.register(agentProtocol)
await app.listen({ port: 0, host: '127.0.0.1' })
const address = app.server.address()
console.log(typeof address === 'object' && address !== null ? address.port : '')
