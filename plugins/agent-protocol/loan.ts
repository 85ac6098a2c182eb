import { type Agent, AgentError, type Decision, type RuntimeContext } from '../../lib/agent/index.ts'
import { type FastifyRequest } from 'fastify'
import { type RunRecord } from '../../lib/stores/index.ts'
import { type AgentLease, type AgentRequest, agentRequest } from './agent-request.ts'
import { autoDenied } from './auto-deny.ts'
import { tellingDecisions } from './confirm-results.ts'
import { prepareContext } from './customizer.ts'
import { statusOf } from './ending.ts'
import { type Place } from './places.ts'
import { taskProtocol } from './protocol.ts'
import { type Caller, type TaskScope } from './scope.ts'
import { type Submission } from './submission.ts'
import { publishArtifactKey, taskWorkspaceKey } from './workspace.ts'

/** For whom an agent is borrowed. */
export interface LoanOptions {
  readonly submission: Submission
  readonly caller: Caller
  readonly userId: string | undefined
  readonly place: Place
  /** The answers, on a resume. */
  readonly decisions?: readonly Decision[] | undefined
  /** The request that led here; absent where a timer did. */
  readonly request?: FastifyRequest | undefined
}

/** The agent of one execution: chosen when its turn has come, given back when the execution has ended. */
export class AgentLoan {
  readonly #scope: TaskScope
  readonly #options: LoanOptions
  #request: AgentRequest | undefined
  #lease: AgentLease | undefined
  #record: RunRecord | undefined
  /** Chosen before its turn, and how its request is told to stop. */
  #early: { readonly agent: Agent, readonly stop: AbortController } | undefined

  constructor (scope: TaskScope, options: LoanOptions) {
    this.#scope = scope
    this.#options = options
  }

  /** Waits for the place and chooses; what it throws fails the task. */
  readonly make = async (signal: AbortSignal): Promise<Agent> => {
    const { place, decisions } = this.#options
    await place.ready(signal)
    const agent = tellingDecisions(this.#takeEarly(signal) ?? await this.#chosen(signal), decisions ?? [])
    const { hitlEnabled, maxAutoDenyRounds } = this.#scope.options
    return hitlEnabled ? agent : autoDenied(agent, maxAutoDenyRounds)
  }

  /** Whether the agent may be given the same input again after a crash. Chooses it already; `settle` gives it back. */
  async isRestartable (): Promise<boolean> {
    const stop = new AbortController()
    const agent = await this.#chosen(stop.signal)
    this.#early = { agent, stop }
    return agent.capabilities?.restartable === true
  }

  /** Fills the context, once the agent was chosen. */
  readonly prepare = async (context: RuntimeContext): Promise<void> => {
    const { workspaces } = this.#scope
    const { submission: { workspaceId: id, taskId }, caller: { owner } } = this.#options
    const task = { id, owner, taskId }
    context.set(taskWorkspaceKey, { directory: () => workspaces.directory(task) })
    context.set(publishArtifactKey, (artifact) => workspaces.write(task, artifact, true))
    if (this.#request !== undefined) await prepareContext(this.#request, context, this.#scope.options.customizers)
  }

  /** The execution has ended. */
  settle (record: RunRecord): void {
    this.#record = record
    this.#options.place.leave()
    this.#release()
  }

  #takeEarly (signal: AbortSignal): Agent | undefined {
    if (this.#early === undefined) return undefined
    const { agent, stop } = this.#early
    signal.addEventListener('abort', () => { stop.abort(signal.reason) }, { once: true })
    return agent
  }

  async #chosen (signal: AbortSignal): Promise<Agent> {
    const { submission, caller, userId, decisions } = this.#options
    this.#request = agentRequest(submission, { principal: caller.principal, userId, signal, decisions })
    return await this.#choose(this.#request)
  }

  async #choose (request: AgentRequest): Promise<Agent> {
    const { agentFactory } = this.#scope.options
    if (agentFactory === undefined) return await this.#registered(request.agentId)
    const made = await agentFactory(request)
    if (made === undefined || made === null) throw notFound(`AgentFactory returned no agent for agent_id=${request.agentId}`)
    if (!('agent' in made)) return borrowed(made)
    this.#lease = made
    // It came too late: nobody else will give it back.
    if (this.#record !== undefined) this.#release()
    return borrowed(made.agent)
  }

  async #registered (agentId: string): Promise<Agent> {
    const { registry } = this.#scope.host
    const id = registry.ids.includes(agentId) ? agentId : registry.defaultId
    if (id === undefined) throw notFound(`no agent for agent_id=${agentId}`)
    const resolved = registry.resolve(id)
    const { caller: { principal }, submission: { sessionId }, request } = this.#options
    // A factory for web requests is only asked while there is one, see `needsRequest`.
    const agent = await resolved.make({ agentId: id, protocol: taskProtocol.name, session: sessionId, principal, request: request as FastifyRequest })
    return resolved.isOwned ? agent : borrowed(agent)
  }

  #release (): void {
    const lease = this.#lease
    const record = this.#record
    if (lease?.release === undefined || record === undefined) return
    this.#lease = undefined
    giveBack(lease, record).catch((error: unknown) => { this.#scope.log.warn({ err: error, taskId: record.clientId }, 'giving an agent back failed') })
  }
}

async function giveBack (lease: AgentLease, record: RunRecord): Promise<void> {
  await lease.release?.({ status: statusOf(record) })
}

/** Whether the agent of a name is made for each web request; such an instance is kept while its task waits. */
export function needsRequest ({ host: { registry }, options }: TaskScope, agentId: string): boolean {
  if (options.agentFactory !== undefined) return false
  const id = registry.ids.includes(agentId) ? agentId : registry.defaultId
  return id !== undefined && registry.resolve(id).isOwned
}

/** The application's own agent: it outlives the run, so that the engine finds nothing to close. */
function borrowed (agent: Agent): Agent {
  return {
    name: agent.name,
    ...agent.description !== undefined && { description: agent.description },
    ...agent.capabilities !== undefined && { capabilities: agent.capabilities },
    stream: (input, context) => agent.stream(input, context)
  }
}

function notFound (message: string): AgentError {
  return new AgentError({ code: 'agent_not_found', message, expose: true })
}
