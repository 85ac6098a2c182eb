import { type GenerateReason, type Msg, MsgMetadata, type Pending } from '../../lib/agent/index.ts'
import { type MappingConfig } from './config.ts'
import { type Failure, RunErrorCode, runError, runErrorOf } from './errors.ts'
import { type AgUiEvent, type Interrupt, type Outcome, type TokenUsage } from './event-schemas.ts'
import { type Profile } from './input.ts'
import { interruptOf } from './interrupts.ts'
import { type NormalisedInput } from './schemas.ts'
import { type ToolCalls } from './tool-calls.ts'

/** An interrupt as it was recorded. */
export interface RecordedInterrupt {
  readonly id: string
  readonly pending: Pending
  /** Milliseconds since 1970. */
  readonly expiresAt?: number
}

/** How an execution ended, as far as AG-UI tells it; the engine's own description fits. */
export type RunEnd =
  | { readonly kind: 'completed', readonly reason: GenerateReason, readonly message: Msg }
  | { readonly kind: 'paused', readonly pending: readonly Pending[], readonly interrupts: readonly RecordedInterrupt[], readonly message: Msg }
  | { readonly kind: 'cancelled', readonly message?: string }
  | { readonly kind: 'interrupted', readonly why: 'disconnect' | 'shutdown' | 'superseded' | 'agent' }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'failed', readonly error: Failure }

/** What a terminal is made of besides the end itself. */
export interface TerminalContext {
  readonly input: NormalisedInput
  readonly config: MappingConfig
  readonly profile: Profile
  readonly calls: ToolCalls
  readonly usage: readonly TokenUsage[]
  readonly now: () => number
}

const INTERRUPTED_TEXT = {
  disconnect: 'The run was interrupted because nobody was connected to it any more.',
  shutdown: 'The run was interrupted because the server shuts down.',
  superseded: 'The run was interrupted by another run on its thread.'
} as const

/** The terminal of a run, in the shape its client understands (sections 8, 15, 16, 19.2, 20). */
export function terminalOf (end: RunEnd, context: TerminalContext): AgUiEvent {
  switch (end.kind) {
    case 'completed':
      return finished(context, successOf(context), resultOf(end.message))
    case 'paused':
      return paused(end, context)
    case 'cancelled':
      return cancelled(context, end.message ?? 'The run was stopped.', context.config.legacyCancel)
    case 'interrupted':
      // An agent that noticed the interrupt has ended in good order: the reference finishes such a run.
      if (end.why === 'agent') return cancelled(context, '', 'finished')
      return failed(context, RunErrorCode.interrupted, INTERRUPTED_TEXT[end.why])
    case 'timeout':
      return failed(context, RunErrorCode.timeout, 'The run took longer than it may.')
    case 'failed': {
      const { code, message } = runErrorOf(end.error, context.config.exposeErrors)
      return failed(context, code, message)
    }
  }
}

function paused (end: Extract<RunEnd, { kind: 'paused' }>, context: TerminalContext): AgUiEvent {
  const { calls, config } = context
  const recorded: readonly (RecordedInterrupt | { readonly pending: Pending, readonly id?: undefined, readonly expiresAt?: undefined })[] =
    end.interrupts.length > 0 ? end.interrupts : end.pending.map((pending) => ({ pending }))
  // A tool of the page is answered by a message, not by a decision: an interrupt for it would refuse the run that brings the answer (section 19.2).
  const waiting = recorded.filter(({ pending }) => config.frontendToolOutcome === 'interrupt' || !isClientCall(pending, calls))
  if (waiting.length === 0) {
    const pending = end.pending.flatMap((item) => isClientCall(item, calls) && item.kind !== 'input' ? [calls.wireId(item.toolCall.id)] : [])
    return finished(context, successOf(context, pending), resultOf(end.message))
  }
  const interrupts: Interrupt[] = waiting.map(({ pending, id, expiresAt }) => interruptOf(pending, {
    ...id !== undefined && { id },
    expiresAt,
    ...pending.kind !== 'input' && { toolCallId: calls.wireId(pending.toolCall.id), suspensionText: calls.suspensionText(pending.toolCall.id) }
  }))
  return finished(context, { type: 'interrupt', interrupts })
}

function isClientCall (pending: Pending, calls: ToolCalls): boolean {
  return pending.kind === 'external' && calls.isClient(pending.toolCall.id, pending.toolCall.name)
}

/**
 * Success, as v1 says it; clients before 1.0 take a missing outcome for it and throw on pending calls.
 * @param pending calls of the page that the agent waits for, also those that an earlier run has started
 */
function successOf ({ profile, calls }: TerminalContext, pending: readonly string[] = []): Outcome | undefined {
  if (profile === 'legacy') return undefined
  const pendingToolCallIds = [...new Set([...pending, ...calls.unansweredClientCalls])]
  return { type: 'success', ...pendingToolCallIds.length > 0 && { pendingToolCallIds } }
}

function cancelled (context: TerminalContext, message: string, legacy: 'error' | 'finished'): AgUiEvent {
  if (context.profile === 'v1') return finished(context, { type: 'cancelled' })
  return legacy === 'error' ? failed(context, RunErrorCode.cancelled, message) : finished(context, undefined)
}

/** Structured output, where the agent made any; a null is no result. */
function resultOf (message: Msg): unknown {
  return message.metadata?.[MsgMetadata.structuredOutput] ?? undefined
}

function finished ({ input, usage }: TerminalContext, outcome: Outcome | undefined, result?: unknown): AgUiEvent {
  return {
    type: 'RUN_FINISHED',
    threadId: input.threadId,
    runId: input.runId,
    ...result !== undefined && { result },
    ...outcome !== undefined && { outcome },
    ...usage.length > 0 && { usage: [...usage] }
  }
}

function failed ({ usage, now }: TerminalContext, code: string, message: string): AgUiEvent {
  return runError(code, message, now(), usage)
}
