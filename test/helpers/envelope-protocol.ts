import { type AgentEvent, pendingId } from '../../lib/agent/index.ts'
import { type View } from '../../lib/bus/index.ts'
import { type Emit, type ExecutionEnd, type Projection, type RunProtocol } from '../../lib/runs/index.ts'

/**
 * A made-up protocol in the manner of JSON-RPC: what it logs is the result alone, the request's id is put around it by the
 * writer, and the same log is served in a second binding. Its pauses go on in a new run of the session.
 */
export const envelope: RunProtocol = {
  name: 'envelope',
  resumesIn: 'session',
  idScope: 'session',
  project: (run, { resumed, knownCalls }) => new EnvelopeProjection(run.clientId, resumed, knownCalls),
  interruptId: (pending) => pending.kind === 'external' ? undefined : `int:${pendingId(pending)}`,
  lost: (_run, failure) => [{ data: JSON.stringify({ error: failure.code }) }]
}

class EnvelopeProjection implements Projection {
  readonly #id: string
  readonly #resumed: boolean
  readonly #knownCalls: ReadonlySet<string>

  constructor (id: string, resumed: boolean, knownCalls: ReadonlySet<string>) {
    this.#id = id
    this.#resumed = resumed
    this.#knownCalls = knownCalls
  }

  open (emit: Emit): void {
    emit(JSON.stringify({ begin: this.#id, ...this.#resumed && { resumed: [...this.#knownCalls] } }))
  }

  next (event: AgentEvent, emit: Emit): void {
    if (event.type === 'TEXT_BLOCK_DELTA') emit(JSON.stringify({ delta: event.delta }))
    if (event.type === 'TOOL_CALL_START') emit(JSON.stringify({ call: event.toolCallId }))
    if (event.type === 'TOOL_RESULT_END') emit(JSON.stringify({ result: event.toolCallId, state: event.state }))
  }

  close (end: ExecutionEnd, emit: Emit): void {
    switch (end.kind) {
      case 'completed': emit(JSON.stringify({ end: 'success' })); break
      case 'paused': emit(JSON.stringify({ end: 'paused', interrupts: end.interrupts.map(({ id }) => id), calls: end.pending.map(pendingId) })); break
      case 'failed': emit(JSON.stringify({ error: end.error.code, message: end.error.message })); break
      case 'interrupted': emit(JSON.stringify({ error: end.why })); break
      default: emit(JSON.stringify({ error: end.kind }))
    }
  }
}

/** The JSON-RPC binding: a reader's own request id goes around each frame by `wrap`. */
export const rpcView: View = { key: 'envelope rpc', frame: ({ data }) => ({ head: '', data, tail: '\n' }) }

/** What a JSON-RPC reader attaches with. */
export function rpcWrap (id: string | number): { readonly prefix: string, readonly suffix: string } {
  return { prefix: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`, suffix: '}' }
}

/** The second binding: the same payloads as binary, two bytes of length before each. */
export const binaryView: View = {
  key: 'envelope binary',
  frame: ({ data }) => {
    const body = Buffer.from(data)
    const bytes = Buffer.alloc(2 + body.length)
    bytes.writeUInt16BE(body.length)
    body.copy(bytes, 2)
    return { head: '', data: bytes, tail: '' }
  }
}
