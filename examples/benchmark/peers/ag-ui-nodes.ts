import { textOf } from '../../../lib/agent/index.ts'
import agents from '../../../plugins/agents/index.ts'
import agUi from '../../../plugins/ag-ui/index.ts'
import { Child } from '../child.ts'
import { createApp, listenApp } from '../fastify-server.ts'
import { type Endpoint, type Peer, type Setup } from '../peer.ts'
import { openRedisStore, startRedis } from '../redis-server.ts'
import { benchAgent } from './ag-ui.ts'

/**
 * Our AG-UI plugin on a node that executes nothing: each run that it is asked for is begun on another node and read here, over a Redis that both
 * share. The CPU time is that of the node that is read from; latencies are from the agent there to the client here.
 */
export const agUiNodesPeer: Peer = { name: 'ag-ui-nodes', packages: [], workloads: ['W2'], listen }

async function listen (setup: Setup): Promise<Endpoint> {
  const redis = await startRedis()
  const owner = Child.start<string>('nodes-owner', 1, redis)
  await owner.ready(30_000)
  const app = createApp()
  await app.register(agents, { agents: { bench: benchAgent }, store: await openRedisStore(redis) })
  await app.register(agUi, { heartbeatMs: setup.heartbeatMs })
  const { engine } = app.agents
  engine.start = async (spec) => {
    await owner.ask(JSON.stringify({ threadId: spec.session, runId: spec.clientId, messages: [{ id: 'm1', role: 'user', content: spec.input.messages.map(textOf).join('') }] }), 30_000)
    const run = await engine.find(spec.owner, spec.protocol.name, spec.clientId)
    if (run === undefined) throw new Error('The other node did not begin the run.')
    return { kind: 'existing', run }
  }
  return {
    port: await listenApp(app),
    lastEventId: '0',
    subscribers: () => 0,
    publish () { throw new Error('A run is its agent\'s: nobody else publishes to it.') }
  }
}
