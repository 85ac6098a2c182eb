// One service, several tenants. `back` chooses an agent by the task's `agent_id` and by the tenant in its attributes; `front` takes tasks
// itself and hands parts of them to two agents of `back`, with the attributes of whoever asked. Checks itself and ends:
//
//   npx tsx --conditions=fastify-agents:source examples/tenants.ts
import assert from 'node:assert/strict'
import Fastify from 'fastify'
import { type Agent, asTool, contextKey, runTool, textAgent, textOf } from 'fastify-agents/agent'
import agentProtocol, { flatten } from 'fastify-agents/agent-protocol'
import { remoteAgent, remoteAttributes } from 'fastify-agents/agent-protocol/client'

/** What the service knows of a tenant, and an agent only through its context. */
interface Tenant { readonly name: string, readonly currency: string }
const tenantKey = contextKey<Tenant>('tenant')
const tenants = new Map<string, Tenant>([['blue', { name: 'Blue & Sons', currency: 'EUR' }], ['red', { name: 'Red Ltd', currency: 'GBP' }]])

/** Who works for whom. Made once: what a factory returns stays the application's. */
const parcels = textAgent((_, { attributes }) => `The parcel of ticket ${String(attributes.get('ticket_id'))} is on its way.`)
const invoices = textAgent((_, context) => `${context.get(tenantKey)?.name} is owed 40 ${context.get(tenantKey)?.currency}.`)
const byTenant: Readonly<Record<string, Readonly<Record<string, Agent>>>> = { blue: { parcels, invoices }, red: { invoices } }

const back = Fastify()
await back.register(agentProtocol, {
  // Asked for each execution, on a resume with the same submission: a task stays with its agent.
  agentFactory: ({ agentId, attributeString }) => byTenant[attributeString('tenant') ?? '']?.[agentId],
  customizers: [
    // What a caller sends is one object under one key, unless it is named here.
    flatten('ticket_id'),
    async ({ attributeString }, context) => { context.set(tenantKey, tenants.get(attributeString('tenant') ?? '')) }
  ]
})
const url = await back.listen({ port: 0, host: '127.0.0.1' })

/** Two agents of one service, told apart by the `agent_id` that each submits. */
const colleagues = ['parcels', 'invoices'].map((agentId) => asTool(remoteAgent({ url, agentId })))

const desk: Agent = {
  name: 'desk',
  capabilities: { denyRules: true },
  async * stream ({ messages }, context) {
    const prompt = textOf(messages.at(-1)?.content ?? [])
    const answers: string[] = []
    for (const colleague of colleagues) {
      const outcome = yield * runTool(colleague, { id: `ask-${colleague.name}`, name: colleague.name, input: { prompt } }, context, { announce: true })
      if (outcome.kind === 'done') answers.push(outcome.state === 'success' ? textOf(outcome.output) : `Nobody does ${colleague.name} here.`)
    }
    yield { type: 'TEXT_BLOCK_DELTA', delta: answers.join(' ') }
  }
}

const front = Fastify()
await front.register(agentProtocol, {
  agents: { desk },
  // Goes along with every task that this one hands on.
  customizers: [({ attributes }, context) => { context.set(remoteAttributes, attributes) }]
})
const desks = await front.listen({ port: 0, host: '127.0.0.1' })

const blue = await ask('blue', 'T-7')
console.log('blue:', blue.result)
assert.equal(blue.result, 'The parcel of ticket T-7 is on its way. Blue & Sons is owed 40 EUR.')
assert.deepEqual(blue.sources, ['parcels', 'invoices'], 'what the colleagues do is seen at the desk while they do it')

const red = await ask('red', 'T-8')
console.log('red:', red.result)
assert.equal(red.result, 'Nobody does parcels here. Red Ltd is owed 40 GBP.')
await Promise.all([front.close(), back.close()])

/** Submits a task, follows it to its end, and gives its result with the paths of the agents that had a part in it. */
async function ask (tenant: string, ticket: string): Promise<{ readonly result: string | undefined, readonly sources: readonly string[] }> {
  const id = `question-${tenant}`
  const submitted = await fetch(`${desks}/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ task_id: id, agent_id: 'desk', input: 'How do we stand?', context: { detail: 'verbose', attributes: { tenant, ticket_id: ticket } } })
  })
  assert.equal(submitted.status, 200)
  const stream = await (await fetch(`${desks}/tasks/${id}/events`)).text()
  const events = stream.split('\n').flatMap((line) => line.startsWith('data: ') ? [JSON.parse(line.slice(6)) as { type: string, result?: string, payload?: string }] : [])
  const sources = events.flatMap(({ type, payload }) => type === 'TEXT_DELTA' ? [(JSON.parse(payload ?? '{}') as { source?: string }).source ?? ''] : [])
  return { result: events.at(-1)?.result, sources: sources.filter((source) => source !== '') }
}
