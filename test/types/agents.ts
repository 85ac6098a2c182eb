// What must and must not compile (checked by tsc, never run).
import Fastify from 'fastify'
import agUi from 'fastify-agents/ag-ui'
import agents, { type AgentsPluginOptions, type LimitOptions } from 'fastify-agents/agents'

const app = Fastify()

export const whole: AgentsPluginOptions = {
  limits: { maxRuns: 1, maxStreams: 1, maxStoredBytes: 1 }, onShutdown: 'finish', metrics: { path: '/metrics' }, tracing: true, health: { readyPath: '/ready' }
}
app.register(agents, whole)
// A protocol that stands alone has limits, and none of the server's own routes.
app.register(agUi, { limits: { maxRuns: 1 }, onShutdown: 'finish' })

// @ts-expect-error metrics are the agents plugin's
app.register(agUi, { metrics: { path: '/metrics' } })
// @ts-expect-error health is the agents plugin's
app.register(agUi, { health: {} })
// @ts-expect-error there is no such limit
export const limits: LimitOptions = { maxTokens: 1 }
// @ts-expect-error there is no such way to shut down
app.register(agents, { onShutdown: 'wait' })

// What protocol plugins stand on.
app.agents.drain()
app.agents.admitStream satisfies (owner: { readonly id?: string }, reply: never) => void
