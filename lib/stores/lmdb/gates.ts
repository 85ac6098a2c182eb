import type { EnterResult, GateHolder, GateStore, GateTicket, RenewTicketResult } from '../gates.ts'
import { GateQueue, type KeptTicket } from '../rules/gate-queue.ts'
import { frozenJson } from '../rules/frozen-json.ts'
import type { Owner } from '../run-key.ts'
import { jsonBytes, jsonOf } from './json-bytes.ts'
import { keyOf, ownedHashOf, TAG } from './keys.ts'
import type { LmdbParts } from './parts.ts'

/** A ticket as JSON; JSON has no Infinity. */
interface StoredTicket extends Omit<KeptTicket, 'expiresAt'> {
  readonly expiresAt: number | null
}

/** {@link GateStore} in LMDB: each queue is one entry, dropped when its last ticket has run out. */
export class LmdbGates implements GateStore {
  readonly #parts: LmdbParts

  constructor (parts: LmdbParts) {
    this.#parts = parts
    parts.sweeper.register(TAG.gate, (key) => { parts.values.remove(key) })
  }

  async enter (owner: Owner, session: string, ticket: GateTicket, maxTickets = Infinity): Promise<EnterResult> {
    const { now } = this.#parts.runs
    const given = frozenJson(ticket)
    return await this.#change(owner, session, (gate): EnterResult => {
      const { id } = ticket
      gate.pass(now, id)
      const { head } = gate
      if (!gate.has(id) && head !== undefined && gate.size >= maxTickets) return { kind: 'full', holder: head }
      gate.put({ ...given, ms: ticket.ms }, now)
      return gate.placeOf(id)
    })
  }

  async renew (owner: Owner, session: string, id: string, ms: number | undefined): Promise<RenewTicketResult> {
    const { now } = this.#parts.runs
    return await this.#change(owner, session, (gate): RenewTicketResult => {
      if (!gate.renew(id, ms, now)) return { kind: 'out' }
      gate.pass(now, id)
      return gate.placeOf(id)
    })
  }

  async leave (owner: Owner, session: string, id: string): Promise<GateHolder | undefined> {
    const { now } = this.#parts.runs
    return await this.#change(owner, session, (gate) => {
      gate.remove(id)
      gate.pass(now)
      return gate.head
    })
  }

  async holder (owner: Owner, session: string): Promise<GateHolder | undefined> {
    const key = gateKey(owner, session)
    const gate = this.#gate(key)
    const before = gate.size
    gate.pass(this.#parts.runs.now)
    // Who was passed over has lost its place for good.
    return gate.size === before ? gate.head : await this.leave(owner, session, '')
  }

  #gate (key: Buffer): GateQueue {
    const kept = this.#parts.values.kept(key)
    const tickets = kept === undefined ? [] : jsonOf<StoredTicket[]>(kept.value)
    return new GateQueue(tickets.map(({ expiresAt, ...rest }) => ({ ...rest, expiresAt: expiresAt ?? Infinity })))
  }

  async #change<Result> (owner: Owner, session: string, act: (gate: GateQueue) => Result): Promise<Result> {
    const { values, queue } = this.#parts
    const key = gateKey(owner, session)
    return await queue.write(() => {
      const gate = this.#gate(key)
      const before = JSON.stringify(gate.tickets)
      const result = act(gate)
      const after = jsonBytes(gate.tickets)
      if (gate.size === 0) values.remove(key)
      else if (after.toString() !== before) values.put(key, after, gate.expiresAt)
      return result
    })
  }
}

function gateKey (owner: Owner, session: string): Buffer {
  return keyOf(TAG.gate, ownedHashOf('gate', owner, session))
}
