import { type AgentEvent, pendingId } from '../../lib/agent/index.ts'
import { type EventInit, type View } from '../../lib/bus/index.ts'
import { type Emit, type ExecutionEnd, type ExecutionInfo, type Projection, type RunProtocol } from '../../lib/runs/index.ts'
import { type RunRecord } from '../../lib/stores/index.ts'

/** Levels of detail: every reader sees `status`, some `full`, some everything. */
export const LEDGER_LEVELS = { status: 0, full: 1, verbose: 2 } as const

/** A line of the ledger, as a client reads it. */
export interface LedgerLine { readonly kind: string, readonly [field: string]: unknown }

/** What the fold of a ledger knows. */
export interface LedgerState { status: string, text: string, asks: string[], isOpen: boolean }

/**
 * A made-up protocol in the manner of tasks: bare integer cursors, several executions in one run, three levels of detail, a
 * pause that leaves the stream open.
 */
export const ledger: RunProtocol<LedgerState> = {
  name: 'ledger',
  resumesIn: 'run',
  project: (run, execution) => new LedgerProjection(run, execution),
  interruptId: (pending) => `ask-${pendingId(pending)}`,
  lost: (_run, failure) => [line('status', { kind: 'error', code: failure.code })],
  fold: {
    initial: () => ({ status: 'pending', text: '', asks: [], isOpen: false }),
    step: (state, { data }) => {
      const event = JSON.parse(data) as LedgerLine
      switch (event.kind) {
        case 'started': state.status = 'running'; break
        case 'text': state.text += String(event.text); state.isOpen = true; break
        case 'text-end': state.isOpen = false; break
        case 'asks': state.status = 'waiting'; state.asks = event.ids as string[]; break
        case 'error': case 'success': case 'cancelled': state.status = event.kind
      }
      return state
    },
    snapshot: (state) => [line('status', { kind: 'snapshot', ...state })]
  }
}

class LedgerProjection implements Projection {
  readonly #execution: ExecutionInfo
  readonly #run: RunRecord

  constructor (run: RunRecord, execution: ExecutionInfo) {
    this.#run = run
    this.#execution = execution
  }

  open (emit: Emit): void {
    this.#put(emit, 'status', { kind: 'started', run: this.#run.clientId, execution: this.#execution.index })
  }

  next (event: AgentEvent, emit: Emit): void {
    switch (event.type) {
      case 'TEXT_BLOCK_DELTA': this.#put(emit, 'full', { kind: 'text', text: event.delta }); break
      case 'TEXT_BLOCK_END': this.#put(emit, 'full', { kind: 'text-end' }); break
      case 'TOOL_CALL_START': this.#put(emit, 'status', { kind: 'call', id: event.toolCallId }); break
      case 'TOOL_RESULT_END': this.#put(emit, 'status', { kind: 'result', id: event.toolCallId, state: event.state }); break
      default: this.#put(emit, 'verbose', { kind: 'event', type: event.type })
    }
  }

  close (end: ExecutionEnd, emit: Emit): void {
    switch (end.kind) {
      case 'completed': this.#put(emit, 'status', { kind: 'success', reason: end.reason }); break
      case 'paused': this.#put(emit, 'status', { kind: 'asks', ids: end.interrupts.map(({ id }) => id) }); break
      case 'cancelled': this.#put(emit, 'status', { kind: 'cancelled' }); break
      case 'interrupted': this.#put(emit, 'status', { kind: 'error', code: end.why }); break
      case 'timeout': this.#put(emit, 'status', { kind: 'error', code: 'timeout' }); break
      case 'failed': this.#put(emit, 'status', { kind: 'error', code: end.error.code, message: end.error.message })
    }
  }

  #put (emit: Emit, level: keyof typeof LEDGER_LEVELS, event: LedgerLine): void {
    emit(JSON.stringify(event), { event: event.kind, level: LEDGER_LEVELS[level] })
  }
}

/** A detail level as a view: what it leaves out is told by `prevSeq`. */
export function ledgerView (level: keyof typeof LEDGER_LEVELS): View {
  return {
    key: `ledger ${level}`,
    frame: ({ seq, data, level: own }, { prevSeq }) => (own ?? 0) > LEDGER_LEVELS[level]
      ? undefined
      : { head: `${prevSeq} ${seq} `, data, tail: '\n' }
  }
}

function line (level: keyof typeof LEDGER_LEVELS, event: LedgerLine): EventInit {
  return { data: JSON.stringify(event), event: event.kind, level: LEDGER_LEVELS[level] }
}
