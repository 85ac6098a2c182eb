import type { JsonValue } from '../../agent/json.ts'
import type { GateHolder, GatePlace, GateTicket } from '../gates.ts'
import { frozenJson } from './frozen-json.ts'

/** A ticket as it is kept. */
export interface KeptTicket {
  readonly id: string
  /** Infinity: parked. */
  readonly expiresAt: number
  readonly data: JsonValue | undefined
}

/** The queue of one session: tickets in order of arrival. */
export class GateQueue {
  readonly #tickets: Map<string, KeptTicket>

  constructor (tickets: Iterable<KeptTicket> = []) {
    this.#tickets = new Map(Array.from(tickets, (ticket) => [ticket.id, ticket]))
  }

  get size (): number { return this.#tickets.size }
  get tickets (): readonly KeptTicket[] { return [...this.#tickets.values()] }

  has (id: string): boolean {
    return this.#tickets.has(id)
  }

  /** The ticket at the head. */
  get head (): GateHolder | undefined {
    const [head] = this.#tickets.values()
    if (head === undefined) return undefined
    const { id, expiresAt, data } = head
    return { id, parked: expiresAt === Infinity, ...data !== undefined && { data } }
  }

  /** When the last ticket runs out; Infinity where one is parked. */
  get expiresAt (): number {
    let latest = -Infinity
    for (const { expiresAt } of this.#tickets.values()) latest = Math.max(latest, expiresAt)
    return latest
  }

  /** Drops tickets that ran out, except the caller's own. */
  pass (now: number, own?: string): void {
    for (const { id, expiresAt } of this.#tickets.values()) if (expiresAt <= now && id !== own) this.#tickets.delete(id)
  }

  /** Puts a ticket at the end; one that is in keeps its place. */
  put ({ id, ms, data }: GateTicket, now: number): void {
    this.#tickets.set(id, { id, expiresAt: until(ms, now), data: data === undefined ? undefined : frozenJson(data) })
  }

  /** Prolongs a ticket. False: it is not in. */
  renew (id: string, ms: number | undefined, now: number): boolean {
    const ticket = this.#tickets.get(id)
    if (ticket === undefined) return false
    this.#tickets.set(id, { ...ticket, expiresAt: until(ms, now) })
    return true
  }

  /** Takes a ticket out. False: it was not in. */
  remove (id: string): boolean {
    return this.#tickets.delete(id)
  }

  /** Where a ticket that is in stands. */
  placeOf (id: string): GatePlace {
    const position = [...this.#tickets.keys()].indexOf(id)
    return { kind: 'in', head: position === 0, position, holder: this.head as GateHolder } // the queue holds the ticket itself
  }
}

function until (ms: number | undefined, now: number): number {
  return ms === undefined ? Infinity : now + ms
}
