// A server as somebody runs it: AG-UI and tasks, on the Redis that others share. Says its port, and is told to end by signals.
import { appendFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { type Agent, textOf } from '../../lib/agent/index.ts'
import { redisStore } from '../../lib/stores/redis/index.ts'
import { agUi } from '../../plugins/ag-ui/index.ts'
import { agentProtocol } from '../../plugins/agent-protocol/index.ts'
import { agents, type AgentsPluginOptions } from '../../plugins/agents/index.ts'
import { approving } from '../helpers/approving-agent.ts'
import { type NodeSettings } from './nodes.ts'

const { redis: url, prefix, journal, host, commandTimeoutMs } = JSON.parse(process.argv[2] ?? '') as NodeSettings

/** `count <n> <ms>`: says 1 to n, one each so many milliseconds. Everything else is a line a tool call, each to be approved. */
const tools = approving([{
  name: 'write',
  needsApproval: true,
  execute: async ({ text }) => {
    await appendFile(journal, `${String(text)}\n`)
    return 'written'
  }
}])
const agent: Agent = {
  name: 'worker',
  capabilities: tools.capabilities ?? {},
  async * stream (input, context) {
    const last = input.messages.at(-1)
    const [, count, ms] = /^count (\d+) (\d+)$/.exec(last === undefined ? '' : textOf(last)) ?? []
    if (count === undefined || (input.resume ?? []).length > 0) return yield * tools.stream(input, context)
    const replyId = `reply-${context.runId}`
    for (let i = 1; i <= Number(count); i++) {
      if (i > 1) await sleep(Number(ms), undefined, { signal: context.signal })
      yield { type: 'TEXT_BLOCK_DELTA', replyId, blockId: 'text', delta: `${i} ` }
    }
  }
}

const client = new Redis(url, { maxRetriesPerRequest: null, ...commandTimeoutMs !== undefined && { commandTimeout: commandTimeoutMs } })
const store = redisStore({ client, prefix })
const app = Fastify({ logger: { level: 'warn', stream: process.stderr } })
/** The same, and it may be begun again. */
const tireless: Agent = { name: 'tireless', capabilities: { ...agent.capabilities, restartable: true }, stream: agent.stream }
const shared: AgentsPluginOptions = { agents: { worker: agent, tireless }, defaultAgent: 'worker', store, leaseMs: 1_500, storeTimeoutMs: 1_000, ...host }
await app.register(agents, shared)
await app.register(agUi, { onDisconnect: 'continue', writeTimeoutMs: 60_000 })
await app.register(agentProtocol)

closeWithGrace({ delay: 20_000 }, async () => {
  app.agents.drain()
  await app.close()
  await store.close()
  client.disconnect()
  console.log('closed')
})
console.log(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port)
