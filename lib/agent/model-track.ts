import type { AgentEventInitOf } from './events.ts'
import { type OpenItem, type Outlet, remove } from './open-item.ts'
import { newId } from './stamp.ts'
import type { UsageMeter } from './usage-meter.ts'

/** The model calls of one source, and their usage. */
export class ModelTrack {
  readonly #outlet: Outlet
  readonly #usage: UsageMeter
  readonly #close: (item: OpenItem) => void
  readonly #ended = new Set<string>()

  /** `close` ends whatever item of the source. */
  constructor (outlet: Outlet, usage: UsageMeter, close: (item: OpenItem) => void) {
    this.#outlet = outlet
    this.#usage = usage
    this.#close = close
  }

  /** Begins a call; gives the id of its reply. */
  start (event: AgentEventInitOf<'MODEL_CALL_START'>): string {
    const before = event.replyId ? this.#find(event.replyId) : undefined
    if (before !== undefined) this.#close(before)
    return this.#begin(event, event.replyId || newId()).replyId
  }

  end (event: AgentEventInitOf<'MODEL_CALL_END'>): void {
    const outlet = this.#outlet
    let item = this.#find(event.replyId)
    if (item === undefined) {
      // An end of its own still carries usage, unless it was told before.
      if (event.usage === undefined || this.#ended.has(event.replyId ?? '')) return outlet.repair('dropped', 'not-open', event.type)
      outlet.repair('inserted', 'missing-start', 'MODEL_CALL_START')
      item = this.#begin({ type: 'MODEL_CALL_START' }, event.replyId || newId())
    }
    this.close(item, event)
  }

  /** Ends an open call, and what its model was saying; results have a life of their own (invariant 6). */
  close (item: OpenItem, event: AgentEventInitOf<'MODEL_CALL_END'>): void {
    const { open } = this.#outlet
    const said = open.filter(({ kind, replyId }) => replyId === item.replyId && kind !== 'model' && kind !== 'result')
    for (const inner of said.reverse()) this.#close(inner)
    remove(open, item)
    this.#ended.add(item.replyId)
    if (event.usage !== undefined) this.#usage.add(this.#outlet.source, event.usage)
    this.#outlet.send({ ...event, replyId: item.replyId })
  }

  #begin (event: AgentEventInitOf<'MODEL_CALL_START'>, replyId: string): OpenItem {
    this.#outlet.send({ ...event, replyId })
    const item: OpenItem = {
      kind: 'model', deltaType: '', source: this.#outlet.source, replyId, id: replyId, name: '', rawId: undefined, key: replyId, held: '', isBlank: true, part: undefined
    }
    this.#outlet.open.push(item)
    return item
  }

  /** By its reply, or the call opened last. */
  #find (replyId: string | undefined): OpenItem | undefined {
    return this.#outlet.open.findLast((item) => item.kind === 'model' && (!replyId || item.replyId === replyId))
  }
}
