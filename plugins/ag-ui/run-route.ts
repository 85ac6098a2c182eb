import { type FastifyReply, type FastifyRequest } from 'fastify'
import { type Agent, AgentError } from '../../lib/agent/index.ts'
import { type Idempotency, type RunSpec, type StartResult } from '../../lib/runs/index.ts'
import { acceptsEventStream, SseClosingError } from '../../lib/sse/index.ts'
import { type AgentRequest, AgentNotFoundError, ownerOf, type ResolvedAgent } from '../agents/index.ts'
import { agentInputOf, type PreparedInput } from './agent-input.ts'
import { contextRequest, fillContext } from './context.ts'
import { IdempotencyConflictError, NotAcceptableError, ThreadBusyError, UnsupportedProtocolVersionError } from './error-handler.ts'
import { AguiInputError, RunErrorCode } from './errors.ts'
import { resolveProfile } from './input.ts'
import { contractMessage } from './contract.ts'
import { type ResolvedAgUiOptions } from './options.ts'
import { findAnswered, printsOf } from './recorded.ts'
import { sendRefusal } from './refusal.ts'
import { type AnsweredInterrupt } from './resume.ts'
import { readAnswers } from './resume-request.ts'
import { resumedCalls } from './resumed-run.ts'
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

  const agentRequest: AgentRequest = { agentId: agent.agentId, protocol: scope.protocol.name, session: input.threadId, principal, request }
  const owner = ownerOf(principal)
  host.admitStream(owner, reply)
  const prints = printsOf(scope.mount, agent.agentId, input)
  const idempotencyKey = firstHeader(request, 'idempotency-key')
  const idempotency: Idempotency = {
    key: idempotencyKey === undefined ? `run:${input.threadId}\n${input.runId}` : `key:${idempotencyKey}`,
    fingerprint: prints.request,
    // CopilotKit sends a thread's next run under the interrupted run's id.
    onOther: idempotencyKey === undefined ? 'new-unless-active' : 'conflict'
  }
  const read = await readAnswers(scope, owner, input)
  if (read.kind === 'refused') {
    // What was taken before is shown again, whatever has become of its thread since (R15).
    const started = await host.engine.findStarted(owner, scope.protocol.name, idempotency)
    if (started?.kind === 'conflict' && idempotencyKey !== undefined) throw new IdempotencyConflictError()
    const recorded = started?.kind === 'existing' ? started.run : await findAnswered(scope, owner, input.threadId, prints)
    if (recorded !== undefined) return followFromStart(scope, reply, recorded)
    return sendRefusal(scope, reply, input, read.code, read.message)
  }
  const { claim, answered } = read
  const { resume = [] } = input
  if (resume.length > answered.length) request.log.warn({ named: resume.length, open: answered.length }, 'answers to interrupts that are not open are passed over')
  const instance = agent.isOwned ? undefined : await agent.make(agentRequest)
  const prepared = prepare(read.input, options, instance?.capabilities?.inputMedia ?? [], answered)
  if (prepared instanceof AguiInputError) return sendRefusal(scope, reply, input, prepared.code, prepared.message)

  const spec: RunSpec = {
    protocol: scope.protocol,
    agentId: agent.agentId,
    agent: instance ?? (() => makeAgent(agent, agentRequest)),
    clientId: input.runId,
    session: input.threadId,
    owner,
    input: prepared.input,
    ...scope.protocol.record(read.input, {
      mount: scope.mount,
      profile,
      ...prepared.skipped.length > 0 && { skipped: prepared.skipped },
      ...claim !== undefined && { resumed: resumedCalls(answered) },
      ...claim !== undefined && prints.answers !== undefined && { answers: prints.answers }
    }),
    prepareContext: (context) => { fillContext(context, read.input, profile, resolved, answered) },
    ...userId !== undefined && { userId },
    idempotency,
    onDisconnect: options.onDisconnect,
    runTimeoutMs: options.runTimeoutMs,
    cancelGraceMs: options.cancelGraceMs,
    writeTimeoutMs: options.writeTimeoutMs,
    onBusySession: options.concurrency,
    holdGateWhileWaiting: false,
    replay: options.replay,
    interruptTtlMs: options.interruptTtlMs,
    ...claim !== undefined && { resumes: claim }
  }

  // Whoever has left while we asked around has been promised nothing.
  if (reply.raw.destroyed) {
    reply.hijack()
    return
  }
  const result = await host.engine.start(spec)
  // Somebody was faster; if that was this very answer, sent twice, both are shown what comes of it.
  const recorded = claim !== undefined && (result.kind === 'busy' || result.kind === 'interrupts') ? await findAnswered(scope, owner, input.threadId, prints) : undefined
  if (recorded !== undefined) return followFromStart(scope, reply, recorded)
  return answer(scope, reply, input, result, idempotencyKey !== undefined)
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
function prepare (input: NormalisedInput, options: ResolvedAgUiOptions, documentTypes: readonly string[], answered: readonly AnsweredInterrupt[]): PreparedInput | AguiInputError {
  try {
    return agentInputOf(input, {
      toolMergeMode: options.toolMergeMode,
      injectContext: options.injectContext,
      unsupportedContent: options.mapping.unsupportedContent,
      documentTypes,
      answered
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

function firstHeader (request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name]
  const first = Array.isArray(value) ? value[0] : value
  return first === undefined || first.trim() === '' ? undefined : first
}
