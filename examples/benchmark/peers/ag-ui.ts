import agUi from '../../../plugins/ag-ui/index.ts'
import { memoryStore, type Store } from '../../../lib/stores/index.ts'
import { type Agent, type AgentEventInit, type AgentInput } from '../../../lib/agent/index.ts'
import { createApp, listenApp } from '../fastify-server.ts'
import { generate, parsePlan, type RunPlan } from '../pace.ts'
import { deltaOf } from '../payload.ts'
import { type Endpoint, type Peer, type Setup } from '../peer.ts'

/**
 * Our AG-UI plugin, the whole way: a POST that is validated, a run with its record, an agent that yields `AgentEvent`s, the
 * normaliser, the mapping, the log, the response. The request's message is the plan (`requests.ts`).
 */
export const agUiPeer: Peer = agUiWith('ag-ui', async () => memoryStore())

/** The plugin on a store. */
export function agUiWith (name: string, openStore: () => Promise<Store>): Peer {
  return { name, packages: [], workloads: ['W1', 'W1t', 'W2'], listen: async (setup) => await listen(setup, await openStore()) }
}

/** Does what the request's message says. */
export const benchAgent: Agent = {
  name: 'bench',
  stream: (input) => generate(planOf(input), textDelta)
}

async function listen (setup: Setup, store: Store): Promise<Endpoint> {
  const app = createApp()
  await app.register(agUi, { agents: { bench: benchAgent }, store, heartbeatMs: setup.heartbeatMs })
  return {
    port: await listenApp(app),
    lastEventId: '0',
    subscribers: () => 0,
    publish () { throw new Error('A run is its agent\'s: nobody else publishes to it.') }
  }
}

function planOf (input: AgentInput): RunPlan {
  const block = input.messages.at(-1)?.content[0]
  if (block?.type !== 'text') throw new Error('The request carries no plan.')
  return parsePlan(new URLSearchParams(block.text))
}

function textDelta (stamp: string): AgentEventInit {
  return { type: 'TEXT_BLOCK_DELTA', delta: deltaOf(stamp) }
}
