import type { JsonValue } from '../../agent/json.ts'
import { StoreFullError } from '../errors.ts'
import type { EnterResult, GateHolder, GatePlace, GateStore, GateTicket, RenewTicketResult } from '../gates.ts'
import { type Owner, ownerText } from '../run-key.ts'
import { frozenJson } from './frozen-json.ts'
import type { MemoryState } from './state.ts'

interface Ticket {
  readonly id: string
  /** Infinity: parked. */
  readonly expiresAt: number
  readonly data: JsonValue | undefined
}

/** Tickets in order of arrival. */
type Gate = Map<string, Ticket>

/** {@link GateStore} in memory. */
export class MemoryGates implements GateStore {
  readonly #state: MemoryState
  readonly #gates = new Map<string, Gate>()
  #tickets = 0

  constructor (state: MemoryState) {
    this.#state = state
    state.register({
      sweep: () => { for (const [text, gate] of this.#gates) this.#pass(text, gate) },
      isEmpty: () => this.#gates.size === 0
    })
  }

  async enter (owner: Owner, session: string, ticket: GateTicket, maxTickets = Infinity): Promise<EnterResult> {
    const { id, data } = ticket
    const text = gateText(owner, session)
    const gate = this.#gates.get(text) ?? new Map<string, Ticket>()
    this.#pass(text, gate, id)
    if (!gate.has(id)) {
      const holder = headOf(gate)
      if (holder !== undefined && gate.size >= maxTickets) return { kind: 'full', holder }
      const limit = this.#state.options.maxTickets
      if (this.#tickets >= limit) throw new StoreFullError('maxTickets', limit)
      this.#tickets++
    }
    gate.set(id, { id, expiresAt: this.#until(ticket.ms), data: data === undefined ? undefined : frozenJson(data) })
    this.#gates.set(text, gate)
    this.#state.keepSwept()
    return placeIn(gate, id)
  }

  async renew (owner: Owner, session: string, id: string, ms: number | undefined): Promise<RenewTicketResult> {
    const text = gateText(owner, session)
    const gate = this.#gates.get(text)
    const ticket = gate?.get(id)
    if (gate === undefined || ticket === undefined) return { kind: 'out' }
    this.#pass(text, gate, id)
    gate.set(id, { ...ticket, expiresAt: this.#until(ms) })
    return placeIn(gate, id)
  }

  async leave (owner: Owner, session: string, id: string): Promise<GateHolder | undefined> {
    const text = gateText(owner, session)
    const gate = this.#gates.get(text)
    if (gate === undefined) return undefined
    if (gate.delete(id)) this.#tickets--
    this.#pass(text, gate)
    return headOf(gate)
  }

  async holder (owner: Owner, session: string): Promise<GateHolder | undefined> {
    const text = gateText(owner, session)
    const gate = this.#gates.get(text)
    if (gate === undefined) return undefined
    this.#pass(text, gate)
    return headOf(gate)
  }

  /** Drops tickets that ran out, except the caller's own, and the gate with its last ticket. */
  #pass (text: string, gate: Gate, own?: string): void {
    const { now } = this.#state
    for (const { id, expiresAt } of gate.values()) {
      if (expiresAt > now || id === own) continue
      gate.delete(id)
      this.#tickets--
    }
    if (gate.size === 0) this.#gates.delete(text)
  }

  #until (ms: number | undefined): number {
    return ms === undefined ? Infinity : this.#state.now + ms
  }
}

function headOf (gate: Gate): GateHolder | undefined {
  const [head] = gate.values()
  if (head === undefined) return undefined
  const { id, expiresAt, data } = head
  return { id, parked: expiresAt === Infinity, ...data !== undefined && { data } }
}

function placeIn (gate: Gate, id: string): GatePlace {
  const position = [...gate.keys()].indexOf(id)
  return { kind: 'in', head: position === 0, position, holder: headOf(gate) as GateHolder } // the gate holds the ticket itself
}

function gateText (owner: Owner, session: string): string {
  return JSON.stringify([ownerText(owner), session])
}
