import { setMaxListeners } from 'node:events'
import { type FastifyInstance, type FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { InvalidOptionError } from '../../lib/options.ts'
import { SseHub } from '../../lib/sse/index.ts'
import { hostFor } from '../agents/host.ts'
import { Arrivals } from './arrivals.ts'
import { registerClassicRoutes } from './classic-routes.ts'
import { Pauses } from './expiry.ts'
import { type AgentProtocolOptions, resolveAgentProtocolOptions } from './options.ts'
import { Places } from './places.ts'
import { taskProtocol } from './protocol.ts'
import { restarting } from './restart.ts'
import { registerRoutes } from './routes.ts'
import { type PauseWatch, type TaskScope } from './scope.ts'
import { acceptUploads } from './upload.ts'
import { openTaskStore } from './task-store.ts'
import { farewell } from './views.ts'
import { Workspaces } from './workspace.ts'
import { WorkspaceSweeper } from './workspace-sweeper.ts'

const plugin: FastifyPluginAsync<AgentProtocolOptions> = async (app: FastifyInstance, given: AgentProtocolOptions) => {
  const options = resolveAgentProtocolOptions(given)
  if (!options.enabled) return
  const { taskStorePath } = options
  const host = hostFor(app, taskStorePath === undefined ? given : { ...given, store: await openTaskStore(app, taskStorePath, given) })
  if (options.agentFactory === undefined && host.registry.ids.length === 0) {
    throw new InvalidOptionError('agentFactory', 'absent', 'no agent is registered, so that a factory is needed')
  }
  const { heartbeatMs, writeTimeoutMs, streamTimeoutMs } = options
  const hub = new SseHub({
    heartbeatMs,
    writeTimeoutMs,
    streamTimeoutMs,
    observer: host.streamObserver(taskProtocol.name),
    // The engine closes its logs before we close the streams that follow them.
    farewell: (cursorId, why) => farewell(cursorId, why === 'stopped' && host.engine.isClosing ? 'closed' : why)
  })
  const closing = new AbortController()
  // Each wait listens.
  setMaxListeners(0, closing.signal)
  const arrivals = new Arrivals()
  const workspaces = new Workspaces(options.workspaceRoot, options)
  const scope: TaskScope & { pauses: PauseWatch } = {
    host,
    hub,
    options,
    log: app.log,
    arrivals,
    places: new Places(options.maxConcurrentRuns, options.maxQueue),
    placeOf: new Map(),
    cancelling: new Set(),
    readers: new Map(),
    workspaces,
    pauses: { watch: () => {}, expire: async () => {}, forget: () => {} },
    closing: closing.signal
  }
  const pauses = scope.pauses = new Pauses(scope)
  const sweeper = new WorkspaceSweeper(scope)

  host.engine.register(taskProtocol, restarting(scope))

  // Runs first: their terminals still reach streams and waits, which then end by themselves.
  app.addHook('preClose', async () => {
    await host.close()
    closing.abort()
    arrivals.close()
    pauses.close()
    sweeper.close()
    await hub.close()
  })

  // Agents may write until the last of them has settled.
  app.addHook('onClose', () => workspaces.close())

  await app.register(async (routes) => {
    await acceptUploads(routes)
    registerRoutes(routes, scope)
    if (options.classic) await routes.register(async (classic) => { registerClassicRoutes(classic, scope) })
  })
}

/**
 * Fastify plugin that serves agents as tasks: `POST /tasks`, `GET /tasks/{id}`, `/wait`, `/events`, `/resume`, `/cancel`, listing and
 * deletion, at the root or under `prefix`. May be registered any number of times under different prefixes, with the agents of
 * `fastify-agents/agents` where that is registered, or with its own.
 */
export const agentProtocol = fp(plugin, { name: 'fastify-agents/agent-protocol', fastify: '5.x', encapsulate: true })

export {
  type AgentFactory, type AgentLease, type AgentRequest, agentRequestKey, byId, type ExecutionOutcome, fixed, of
} from './agent-request.ts'
export { flatten, type OrderedCustomizer, RUNTIME_CONTEXT_ATTRIBUTES_KEY, type RuntimeContextCustomizer } from './customizer.ts'
export { type AgentProtocolOptions } from './options.ts'
export { TaskError, type TaskErrorCode } from './errors.ts'
export { h2cSafeHttp } from './h2c.ts'
export { type Detail, type TaskEvent, type TaskEventType, type TaskStatus } from './wire.ts'
export { type Artifact, type NewArtifact, publishArtifactKey, type TaskWorkspace, taskWorkspaceKey } from './workspace.ts'
export default agentProtocol
