import { type AgentEvent, type AgentEventOf, type Pending } from '../../lib/agent/index.ts'
import { escapeSeparators } from '../../lib/json-line.ts'
import { type Emit, type ExecutionEnd, type Projection } from '../../lib/runs/index.ts'
import { type RunRecord } from '../../lib/stores/index.ts'
import { terminalEvent } from './ending.ts'
import { detailOf, encodeTaskEvent, pendingConfirm } from './events.ts'
import { type Detail, DETAIL_LEVELS, type PendingConfirm, type SentTaskEvent } from './wire.ts'

/** What is fixed with the start of a task (R11). */
export interface TaskDetail {
  readonly detail: Detail
  readonly hasPayload: boolean
  readonly exposeErrors: boolean
  readonly sessionId: string
  /** Characters of a result that the terminal event has room for. */
  readonly maxResult?: number
  /** The task was made without being begun, see `classic-task.ts`. */
  readonly isHeld?: boolean
}

/** Level of detail as the log numbers it. */
export function levelOf (detail: Detail): number {
  return DETAIL_LEVELS.indexOf(detail)
}

/** A task event as the log holds it: without its sequence, which stands first in each frame. */
export function lineOf (event: SentTaskEvent): string {
  return escapeSeparators(JSON.stringify(event))
}

type Ask = AgentEventOf<'REQUIRE_USER_CONFIRM'> | AgentEventOf<'REQUIRE_EXTERNAL_EXECUTION'> | AgentEventOf<'REQUIRE_INPUT'>

/** What may be of a child agent as well: there it starts, ends and pauses nothing of the task. */
const OWN = new Set(['AGENT_START', 'AGENT_END', 'REQUIRE_USER_CONFIRM', 'REQUIRE_EXTERNAL_EXECUTION', 'REQUIRE_INPUT'])

/** Turns the events of one execution into those of the task: what the submitter's detail shows, one pause or one terminal, last. */
export class TaskProjection implements Projection {
  readonly #run: RunRecord
  readonly #detail: TaskDetail
  readonly #ceiling: number
  readonly #isSilent: boolean
  readonly #asks: Ask[] = []

  /** @param isSilent of a task that is only made: it says nothing but its end. */
  constructor (run: RunRecord, detail: TaskDetail, isSilent: boolean) {
    this.#isSilent = isSilent
    this.#run = run
    this.#detail = detail
    this.#ceiling = levelOf(detail.detail)
  }

  open (): void {
    // An execution begins with its agent's own start.
  }

  next (event: AgentEvent, emit: Emit): void {
    if (this.#isSilent) return
    const isChild = event.source !== undefined && OWN.has(event.type)
    if (!isChild && isAsk(event)) {
      // Told with the pause, when somebody can answer (D6, D7).
      this.#asks.push(event)
      return
    }
    const detail = isChild ? 'verbose' : detailOf(event.type)
    if (levelOf(detail) > this.#ceiling) return
    const { type, payload, ...rest } = encodeTaskEvent(event, { taskId: this.#run.clientId, agentId: this.#run.agent })
    this.#emit(emit, detail, {
      type: isChild ? 'AGENT_EVENT' : type, ...rest, ...payload !== undefined && this.#detail.hasPayload && { payload }
    })
  }

  close (end: ExecutionEnd, emit: Emit): void {
    if (end.kind === 'paused' && this.#isSilent) return
    if (end.kind === 'paused' && end.interrupts.length > 0) this.#emit(emit, 'status', this.#pause(end.pending))
    else this.#emit(emit, 'status', terminalEvent(this.#run, end, this.#detail))
  }

  /** One event a pause, whatever it waits for: the confirmations are its payload, or else what it has. */
  #pause (pending: readonly Pending[]): SentTaskEvent {
    const { confirms, external, inputs } = sortPending(pending)
    const main = this.#asks.find(({ type }) => type === 'REQUIRE_USER_CONFIRM') ?? this.#asks[0]
    const { payload, ...envelope } = main === undefined ? {} : encodeTaskEvent(main, { taskId: this.#run.clientId, agentId: this.#run.agent })
    return {
      ...envelope,
      type: 'REQUIRE_CONFIRM',
      taskId: this.#run.clientId,
      pendingConfirms: confirms,
      ...external.length > 0 && { pendingExternal: external },
      ...inputs.length > 0 && { pendingInputs: inputs },
      status: 'awaiting_confirm',
      ...payload !== undefined && this.#detail.hasPayload && { payload }
    }
  }

  #emit (emit: Emit, detail: Detail, event: SentTaskEvent): void {
    emit(lineOf(event), { event: event.type, level: levelOf(detail), isLine: true })
  }
}

/** What a task waits for, by kind, as its clients see it. */
export interface SortedPending {
  readonly confirms: readonly PendingConfirm[]
  readonly external: readonly PendingConfirm[]
  readonly inputs: readonly AgentEventOf<'REQUIRE_INPUT'>['requests'][number][]
}

/** Sorts what is pending by its kind. */
export function sortPending (pending: readonly Pending[]): SortedPending {
  return {
    confirms: pending.flatMap((item) => item.kind === 'confirm' ? [pendingConfirm(item.toolCall)] : []),
    external: pending.flatMap((item) => item.kind === 'external' ? [pendingConfirm(item.toolCall)] : []),
    inputs: pending.flatMap((item) => item.kind === 'input' ? [item.request] : [])
  }
}

function isAsk (event: AgentEvent): event is Ask {
  return event.type === 'REQUIRE_USER_CONFIRM' || event.type === 'REQUIRE_EXTERNAL_EXECUTION' || event.type === 'REQUIRE_INPUT'
}
