import { randomUUID } from 'node:crypto'
import { type FastifyRequest } from 'fastify'
import { isObject, type JsonValue } from '../../lib/agent/index.ts'
import { type Run } from '../../lib/runs/index.ts'
import { isEnded, type KvKey } from '../../lib/stores/index.ts'
import { beginHeldTask } from './classic-task.ts'
import { parseAnswers } from './decisions.ts'
import { errorOf, isHeld, resultIn, statusOf } from './ending.ts'
import { submissionOf } from './protocol.ts'
import { resumeTask } from './resume.ts'
import { type Caller, findTask, type TaskScope } from './scope.ts'
import { openInterrupts, pendingBody } from './snapshot.ts'
import { waitForTask } from './wait.ts'

/** A step as the classic protocol has it, without its artifacts. */
export interface ClassicStep {
  readonly task_id: string
  readonly step_id: string
  readonly name: string | null
  readonly status: 'created' | 'running' | 'completed'
  readonly input: string | null
  readonly additional_input: JsonValue
  readonly output: string | null
  readonly additional_output: JsonValue
  readonly is_last: boolean
}

/** Body of a step. */
export interface StepRequest {
  readonly input: string | undefined
  readonly additionalInput: unknown
}

/** Steps kept of one task. */
const MAX_STEPS = 1_000

/** Runs a task's next step and answers when the run ends, pauses, or has taken `stepTimeoutMs`; then the next step joins it. */
export async function executeStep (scope: TaskScope, run: Run, caller: Caller, { input, additionalInput }: StepRequest, request: FastifyRequest, left: Promise<void>): Promise<ClassicStep> {
  const { record } = run
  const wasEnded = isEnded(record.state)
  if (isHeld(record)) await beginHeldTask(scope, run, caller, input, request)
  else if (statusOf(record) === 'awaiting_confirm' && isObject(additionalInput) && hasAnswers(additionalInput)) {
    await resumeTask(scope, run, caller, parseAnswers(additionalInput), request)
  }
  const begun = await findTask(scope, caller.owner, record.clientId)
  await waitForTask(scope, begun, scope.options.stepTimeoutMs, left)
  const step: ClassicStep = {
    task_id: record.clientId,
    step_id: randomUUID(),
    name: null,
    input: input ?? null,
    additional_input: isObject(additionalInput) ? additionalInput as JsonValue : {}, // a body of JSON
    ...await outcomeOf(scope, await findTask(scope, caller.owner, record.clientId), wasEnded)
  }
  await keep(scope, keyOf(run), step)
  return step
}

/** All steps of a task, oldest first: those that were asked for, or one that stands for a run that was begun otherwise. */
export async function stepsOf (scope: TaskScope, run: Run): Promise<readonly ClassicStep[]> {
  const kept = stepsIn(await scope.host.store.kv.get(keyOf(run)))
  if (kept.length > 0 || isHeld(run.record)) return kept
  return [{
    task_id: run.record.clientId,
    step_id: run.record.key.id,
    name: null,
    input: submissionOf(run.record).input,
    additional_input: {},
    ...await outcomeOf(scope, run, false)
  }]
}

async function outcomeOf (scope: TaskScope, { record }: Run, wasEnded: boolean): Promise<Pick<ClassicStep, 'status' | 'output' | 'additional_output' | 'is_last'>> {
  switch (statusOf(record)) {
    // A step of a task that is over does nothing, and is one all the same.
    case 'success': return { status: 'completed', output: wasEnded ? null : resultIn(record)?.text ?? '', additional_output: {}, is_last: true }
    case 'error': return { status: 'completed', output: null, additional_output: { ...errorOf(record) }, is_last: true }
    case 'cancelled': return { status: 'completed', output: null, additional_output: { cancelled: true }, is_last: true }
    case 'awaiting_confirm': {
      const open = await openInterrupts(scope.host.store.interrupts, record)
      const pending = pendingBody(open) as { readonly [name: string]: JsonValue } // JSON, as every body
      return { status: 'completed', output: 'The agent is waiting for an answer.', additional_output: { awaiting_confirm: true, ...pending }, is_last: false }
    }
    default: return { status: 'running', output: null, additional_output: {}, is_last: false }
  }
}

async function keep ({ host: { store: { kv } }, options }: TaskScope, key: KvKey, step: ClassicStep): Promise<void> {
  for (;;) {
    const known = await kv.get(key)
    const steps = [...stepsIn(known), step].slice(-MAX_STEPS)
    const result = await kv.compareAndSet(key, known, steps as unknown as JsonValue, options.taskTtlMs)
    if (result.kind === 'set') return
  }
}

function hasAnswers (additionalInput: Record<string, unknown>): boolean {
  return ['decisions', 'results', 'tool_results', 'inputs'].some((name) => Object.hasOwn(additionalInput, name))
}

/** Not by the task's name: that may be another task's later. */
function keyOf ({ record: { key: { owner, id } } }: Run): KvKey {
  return { owner, space: 'classic steps', key: id }
}

function stepsIn (value: JsonValue | undefined): readonly ClassicStep[] {
  return Array.isArray(value) ? value as unknown as readonly ClassicStep[] : [] // written by keep()
}
