import { StoreFullError } from '../errors.ts'
import type { EnterResult, GateHolder, GateStore, GateTicket, RenewTicketResult } from '../gates.ts'
import { GateQueue } from '../rules/gate-queue.ts'
import { type Owner, ownerText } from '../run-key.ts'
import type { MemoryState } from './state.ts'

/** {@link GateStore} in memory. */
export class MemoryGates implements GateStore {
  readonly #state: MemoryState
  readonly #gates = new Map<string, GateQueue>()
  #tickets = 0

  constructor (state: MemoryState) {
    this.#state = state
    state.register({
      sweep: () => { for (const [text, gate] of this.#gates) this.#settle(text, gate, () => { gate.pass(state.now) }) },
      isEmpty: () => this.#gates.size === 0
    })
  }

  async enter (owner: Owner, session: string, ticket: GateTicket, maxTickets = Infinity): Promise<EnterResult> {
    const { now } = this.#state
    const text = gateText(owner, session)
    const gate = this.#gates.get(text) ?? new GateQueue()
    this.#settle(text, gate, () => { gate.pass(now, ticket.id) })
    if (!gate.has(ticket.id)) {
      const { head } = gate
      if (head !== undefined && gate.size >= maxTickets) return { kind: 'full', holder: head }
      const limit = this.#state.options.maxTickets
      if (this.#tickets >= limit) throw new StoreFullError('maxTickets', limit)
    }
    this.#settle(text, gate, () => { gate.put(ticket, now) })
    this.#state.keepSwept()
    return gate.placeOf(ticket.id)
  }

  async renew (owner: Owner, session: string, id: string, ms: number | undefined): Promise<RenewTicketResult> {
    const { now } = this.#state
    const text = gateText(owner, session)
    const gate = this.#gates.get(text)
    if (gate?.renew(id, ms, now) !== true) return { kind: 'out' }
    this.#settle(text, gate, () => { gate.pass(now, id) })
    return gate.placeOf(id)
  }

  async leave (owner: Owner, session: string, id: string): Promise<GateHolder | undefined> {
    return this.#look(owner, session, (gate) => { gate.remove(id) })
  }

  async holder (owner: Owner, session: string): Promise<GateHolder | undefined> {
    return this.#look(owner, session, () => {})
  }

  #look (owner: Owner, session: string, act: (gate: GateQueue) => void): GateHolder | undefined {
    const text = gateText(owner, session)
    const gate = this.#gates.get(text)
    if (gate === undefined) return undefined
    this.#settle(text, gate, () => {
      act(gate)
      gate.pass(this.#state.now)
    })
    return gate.head
  }

  /** Changes a gate, keeps the count of all tickets, and keeps the gate as long as it has one. */
  #settle (text: string, gate: GateQueue, change: () => void): void {
    const before = gate.size
    change()
    this.#tickets += gate.size - before
    if (gate.size === 0) this.#gates.delete(text)
    else this.#gates.set(text, gate)
  }
}

function gateText (owner: Owner, session: string): string {
  return JSON.stringify([ownerText(owner), session])
}
