import { createHash } from 'node:crypto'
import { type FastifyReply, type FastifyRequest } from 'fastify'
import { type Agent, AgentError, type Decision } from '../../lib/agent/index.ts'
import { type Run, type RunSpec, type StartResult } from '../../lib/runs/index.ts'
import { acceptsEventStream, SseClosingError } from '../../lib/sse/index.ts'
import { type Owner } from '../../lib/stores/index.ts'
import { type AgentRequest, AgentNotFoundError, ownerOf, type ResolvedAgent } from '../agents/index.ts'
import { agentInputOf, type PreparedInput } from './agent-input.ts'
import { contextRequest, fillContext } from './context.ts'
import { IdempotencyConflictError, NotAcceptableError, ThreadBusyError, UnsupportedProtocolVersionError } from './error-handler.ts'
import { AguiInputError, RunErrorCode } from './errors.ts'
import { resolveProfile } from './input.ts'
import { type ResolvedAgUiOptions } from './options.ts'
import { contractMessage } from './contract.ts'
import { resumeOf } from './resume.ts'
import { sendRefusal } from './refusal.ts'
import { chooseAgent } from './routing.ts'
import { type NormalisedInput } from './schemas.ts'
import { type AgUiScope } from './scope.ts'
import { followFromStart, followRun } from './stream.ts'

/** `POST /run` and `POST /run/:agentId`: starts a run, or finds the one that the same request has started, and streams it. */
export async function handleRun (scope: AgUiScope, request: FastifyRequest, reply: FastifyReply, pathAgentId: string | undefined): Promise<void> {
  if (!acceptsEventStream(request.headers.accept)) throw new NotAcceptableError()
  const { host, options } = scope
  const input = request.body as NormalisedInput // made by the route's validator
  const { profile, supported } = resolveProfile(input.protocolVersion, options.mapping.profile)
  if (!supported) {
    if (options.strictProtocolVersion) throw new UnsupportedProtocolVersionError()
    request.log.warn({ protocolVersion: input.protocolVersion }, 'serving a client of another major version as AG-UI 1.0')
  }

  const principal = await host.principalOf(request)
  const headerAgentId = firstHeader(request, options.agentIdHeader)
  const agent = host.registry.resolve(chooseAgent({ pathAgentId, headerAgentId, forwardedProps: input.forwardedProps }))
  const resolved = await options.runtimeContextResolver?.(contextRequest(request, input, headerAgentId, pathAgentId))
  const userId = principal?.id ?? resolved?.userId

  const print = fingerprint(scope.mount, agent.agentId, input)
  const agentRequest: AgentRequest = { agentId: agent.agentId, protocol: scope.protocol.name, session: input.threadId, principal, request }
  const owner = ownerOf(principal)
  const resume = resumeOf(input, await host.engine.openInterrupts(owner, scope.protocol.name, input.threadId), options)
  if (resume.kind === 'refused') {
    const same = await findSame(scope, owner, input, print)
    if (same !== undefined) return followFromStart(scope, reply, same)
    return sendRefusal(scope, reply, input, resume.code, resume.message)
  }
  const answers = resume.kind === 'answered' ? resume.answers : undefined
  const instance = agent.isOwned ? undefined : await agent.make(agentRequest)
  const prepared = prepare(input, options, instance?.capabilities?.inputMedia ?? [], answers?.claim.decisions)
  if (prepared instanceof AguiInputError) return sendRefusal(scope, reply, input, prepared.code, prepared.message)

  const idempotencyKey = firstHeader(request, 'idempotency-key')
  const spec: RunSpec = {
    protocol: scope.protocol,
    agentId: agent.agentId,
    agent: instance ?? (() => makeAgent(agent, agentRequest)),
    clientId: input.runId,
    session: input.threadId,
    owner,
    input: prepared.input,
    ...scope.protocol.record(scope.mount, input, profile, prepared.skipped),
    prepareContext: (context) => { fillContext(context, input, profile, resolved, answers?.interrupts) },
    ...userId !== undefined && { userId },
    idempotency: {
      key: idempotencyKey === undefined ? `run:${input.threadId}\n${input.runId}` : `key:${idempotencyKey}`,
      fingerprint: print,
      // CopilotKit sends a thread's next run under the interrupted run's id.
      onOther: idempotencyKey === undefined ? 'new-unless-active' : 'conflict'
    },
    onDisconnect: options.onDisconnect,
    runTimeoutMs: options.runTimeoutMs,
    cancelGraceMs: options.cancelGraceMs,
    writeTimeoutMs: options.writeTimeoutMs,
    onBusySession: options.concurrency,
    holdGateWhileWaiting: false,
    replay: options.replay,
    interruptTtlMs: options.interruptTtlMs,
    ...answers !== undefined && { resumes: answers.claim }
  }

  // Whoever has left while we asked around has been promised nothing.
  if (reply.raw.destroyed) {
    reply.hijack()
    return
  }
  return answer(scope, reply, input, await host.engine.start(spec), idempotencyKey !== undefined)
}

/** The run that the same request has started already: it is shown again, whatever has become of its thread since (R15). */
async function findSame ({ host, protocol }: AgUiScope, owner: Owner, { threadId, runId }: NormalisedInput, print: string): Promise<Run | undefined> {
  const run = await host.engine.find(owner, protocol.name, runId, threadId)
  return run?.record.fingerprint === print ? run : undefined
}

/** A factory's instance. It is made when the stream is open already, so that a missing one is told there. */
async function makeAgent (agent: ResolvedAgent, request: AgentRequest): Promise<Agent> {
  try {
    return await agent.make(request)
  } catch (error) {
    if (!(error instanceof AgentNotFoundError)) throw error
    throw new AgentError({ code: RunErrorCode.agentNotFound, message: error.message, expose: true, cause: error })
  }
}

/** The agent's input, or why the request cannot become one. */
function prepare (input: NormalisedInput, options: ResolvedAgUiOptions, documentTypes: readonly string[], decisions: readonly Decision[] | undefined): PreparedInput | AguiInputError {
  try {
    return agentInputOf(input, {
      toolMergeMode: options.toolMergeMode,
      injectContext: options.injectContext,
      unsupportedContent: options.mapping.unsupportedContent,
      documentTypes,
      ...decisions !== undefined && { decisions }
    })
  } catch (error) {
    if (error instanceof AguiInputError) return error
    throw error
  }
}

function answer (scope: AgUiScope, reply: FastifyReply, input: NormalisedInput, result: StartResult, hasKey: boolean): void {
  switch (result.kind) {
    case 'started': return followRun(scope, reply, result.run, { own: true })
    case 'existing': return followFromStart(scope, reply, result.run)
    case 'conflict':
      if (hasKey) throw new IdempotencyConflictError()
      // The thread runs under this very id, for another request.
      return refuseBusy(scope, reply, input, input.runId)
    case 'busy': return refuseBusy(scope, reply, input, result.runningId)
    case 'interrupts': return sendRefusal(scope, reply, input, RunErrorCode.contract, contractMessage(result.problem))
    case 'closing': throw new SseClosingError()
  }
}

function refuseBusy (scope: AgUiScope, reply: FastifyReply, input: NormalisedInput, runningId: string): void {
  if (scope.options.conflictStatus === 409) throw new ThreadBusyError(runningId)
  sendRefusal(scope, reply, input, RunErrorCode.contract, `Thread "${input.threadId}" is busy with run "${runningId}".`)
}

/** Digest of what the run depends on; members of an object are taken in their order, as a client repeats its own text. */
function fingerprint (mount: string, agentId: string, input: NormalisedInput): string {
  return createHash('sha256').update(JSON.stringify([mount, agentId, input])).digest('base64url')
}

function firstHeader (request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name]
  const first = Array.isArray(value) ? value[0] : value
  return first === undefined || first.trim() === '' ? undefined : first
}
