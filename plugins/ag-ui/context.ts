import { contextKey, type RuntimeContext } from '../../lib/agent/index.ts'
import { type FastifyRequest } from 'fastify'
import { type Interrupt } from './event-schemas.ts'
import { type ResolvedRuntimeContext, type RuntimeContextRequest } from './options.ts'
import { type AnsweredInterrupt } from './resume.ts'
import { type RunAgentInput } from './schemas.ts'

/** Typed key under which an agent finds the whole normalised input of its AG-UI run. */
export const runAgentInputKey = contextKey<RunAgentInput>('RunAgentInput')

/**
 * Writes what AG-UI says about a run into its context: the resolver's attributes first, AG-UI's own keys over them, so
 * that neither a resolver nor a caller can forge them.
 */
export function fillContext (context: RuntimeContext, input: RunAgentInput, profile: string, resolved: ResolvedRuntimeContext | undefined, answered: readonly AnsweredInterrupt[] = []): void {
  for (const [name, value] of resolved?.attributes ?? []) context.attributes.set(name, value)
  resolved?.prepare?.(context)
  const { attributes } = context
  // Also those that this run has no value for.
  for (const name of attributes.keys()) if (name.startsWith('agui.')) attributes.delete(name)
  context.set(runAgentInputKey, input)
  attributes.set('agui.threadId', input.threadId)
  attributes.set('agui.runId', input.runId)
  attributes.set('agui.messages', input.messages)
  attributes.set('agui.tools', input.tools)
  attributes.set('agui.context', input.context)
  attributes.set('agui.state', input.state ?? {})
  attributes.set('agui.forwardedProps', input.forwardedProps ?? {})
  attributes.set('agui.resume', input.resume ?? [])
  if (answered.length > 0) attributes.set('agui.resume.interrupts', callInterrupts(answered))
  attributes.set('agui.parentRunId', input.parentRunId)
  attributes.set('agui.protocolVersion', input.protocolVersion)
  attributes.set('agui.profile', profile)
  attributes.set('agui.signal', context.signal)
}

/** The answered interrupts that are about a call, by id, as their client was told of them. */
function callInterrupts (answered: readonly AnsweredInterrupt[]): Record<string, Interrupt> {
  const calls = answered.map(({ interrupt }) => interrupt).filter(({ reason, toolCallId }) => reason === 'tool_call' && toolCallId !== undefined)
  return Object.fromEntries(calls.map((interrupt) => [interrupt.id, interrupt]))
}

/** What the resolver is told about a request. */
export function contextRequest (request: FastifyRequest, input: RunAgentInput, headerAgentId: string | undefined, pathAgentId: string | undefined): RuntimeContextRequest {
  return {
    input,
    headerAgentId,
    pathAgentId,
    transport: 'fastify',
    method: request.method,
    path: request.url.split('?', 1)[0] ?? request.url,
    headers: request.headers,
    queryParams: request.query,
    nativeRequest: request,
    firstHeader (name) {
      const value = request.headers[name.toLowerCase()]
      return Array.isArray(value) ? value[0] : value
    }
  }
}
