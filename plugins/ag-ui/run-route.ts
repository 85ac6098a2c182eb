import { createHash } from 'node:crypto'
import { type FastifyReply, type FastifyRequest } from 'fastify'
import { type RunSpec, type StartResult } from '../../lib/runs/index.ts'
import { acceptsEventStream, SseClosingError } from '../../lib/sse/index.ts'
import { type AgentRequest, ownerOf } from '../agents/index.ts'
import { agentInputOf, type PreparedInput } from './agent-input.ts'
import { contextRequest, fillContext } from './context.ts'
import { IdempotencyConflictError, NotAcceptableError, ThreadBusyError, UnsupportedProtocolVersionError } from './error-handler.ts'
import { AguiInputError, RunErrorCode } from './errors.ts'
import { resolveProfile } from './input.ts'
import { type ResolvedAgUiOptions } from './options.ts'
import { contractMessage } from './contract.ts'
import { sendRefusal } from './refusal.ts'
import { chooseAgent } from './routing.ts'
import { type NormalisedInput } from './schemas.ts'
import { type AgUiScope } from './scope.ts'
import { followRun } from './stream.ts'

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
  const instance = agent.isOwned ? undefined : await agent.make(agentRequest)
  const prepared = prepare(input, options, instance?.capabilities?.inputMedia ?? [])
  if (prepared instanceof AguiInputError) return sendRefusal(scope, reply, input, prepared.code, prepared.message)

  const idempotencyKey = firstHeader(request, 'idempotency-key')
  const spec: RunSpec = {
    protocol: scope.protocol,
    agentId: agent.agentId,
    agent: instance ?? (() => agent.make(agentRequest)),
    clientId: input.runId,
    session: input.threadId,
    owner: ownerOf(principal),
    input: prepared.input,
    ...scope.protocol.record(scope.mount, input, profile, prepared.skipped),
    prepareContext: (context) => { fillContext(context, input, profile, resolved) },
    ...userId !== undefined && { userId },
    idempotency: {
      key: idempotencyKey === undefined ? `run:${input.threadId}\n${input.runId}` : `key:${idempotencyKey}`,
      fingerprint: fingerprint(agent.agentId, input),
      // CopilotKit sends a thread's next run under the interrupted run's id.
      onOther: idempotencyKey === undefined ? 'new-unless-active' : 'conflict'
    },
    onDisconnect: options.onDisconnect,
    runTimeoutMs: options.runTimeoutMs,
    cancelGraceMs: options.cancelGraceMs,
    writeTimeoutMs: options.writeTimeoutMs,
    onBusySession: options.concurrency,
    holdGateWhileWaiting: false,
    replay: options.replay
  }
  return answer(scope, reply, input, await host.engine.start(spec))
}

/** The agent's input, or why the request cannot become one. */
function prepare (input: NormalisedInput, options: ResolvedAgUiOptions, documentTypes: readonly string[]): PreparedInput | AguiInputError {
  try {
    return agentInputOf(input, {
      toolMergeMode: options.toolMergeMode,
      injectContext: options.injectContext,
      unsupportedContent: options.mapping.unsupportedContent,
      documentTypes
    })
  } catch (error) {
    if (error instanceof AguiInputError) return error
    throw error
  }
}

function answer (scope: AgUiScope, reply: FastifyReply, input: NormalisedInput, result: StartResult): void {
  switch (result.kind) {
    case 'started': return followRun(scope, reply, result.run, { own: true })
    case 'existing': return followRun(scope, reply, result.run, { own: false })
    case 'conflict': throw new IdempotencyConflictError()
    case 'busy': {
      const message = `Thread "${input.threadId}" is busy with run "${result.runningId}".`
      if (scope.options.conflictStatus === 409) throw new ThreadBusyError(result.runningId)
      return sendRefusal(scope, reply, input, RunErrorCode.contract, message)
    }
    case 'interrupts': return sendRefusal(scope, reply, input, RunErrorCode.contract, contractMessage(result.problem))
    case 'closing': throw new SseClosingError()
  }
}

/** Digest of what the run depends on; members of an object are taken in their order, as a client repeats its own text. */
function fingerprint (agentId: string, input: NormalisedInput): string {
  return createHash('sha256').update(agentId).update('\n').update(JSON.stringify(input)).digest('base64url')
}

function firstHeader (request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name]
  const first = Array.isArray(value) ? value[0] : value
  return first === undefined || first.trim() === '' ? undefined : first
}
