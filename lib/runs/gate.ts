import { ownerText, type GateHolder, type GateStore, type JsonValue, type Owner } from '../stores/index.ts'
import { deferred, type Deferred } from './deferred.ts'
import { insist } from './insist.ts'

/** Milliseconds for which leaving is tried again, so that a hiccup of the store does not keep a session until the ticket runs out. */
const LEAVE_PATIENCE_MS = 500

/** A run's place in its session's queue. */
export interface Ticket {
  /** Whether it stood at the head when last asked. */
  readonly isHead: boolean
  /** Resolves true at the head, false when the signal fired first. Rejects when the ticket can not be kept. */
  wait (signal: AbortSignal): Promise<boolean>
  /** Keeps the place without a lease: the run waits for somebody (R19). */
  park (): Promise<void>
}

/** What the gates need. */
export interface GatesOptions {
  readonly gates: GateStore
  /** Milliseconds a ticket lives unless renewed. */
  readonly ticketMs: number
  /** Somebody left, and this ticket, which may be another node's, is at the head now. Must not throw. @default nobody is told */
  onTurn? (owner: Owner, session: string, head: GateHolder): void
}

/** The session gates as this node sees them (R19): tickets in the store, waiters woken here at once, elsewhere by the beat. */
export class Gates {
  readonly #options: GatesOptions
  readonly #tickets = new Map<string, Set<HeldTicket>>()

  constructor (options: GatesOptions) {
    this.#options = options
  }

  /** Queues up. One that is in the queue already keeps its place. */
  async enter (owner: Owner, session: string, id: string, data: JsonValue): Promise<Ticket> {
    const { gates, ticketMs } = this.#options
    const place = await gates.enter(owner, session, { id, ms: ticketMs, data })
    return this.#hold(owner, session, id, place.kind === 'in' && place.head)
  }

  /** Takes the session, or says who has it. */
  async enterIfFree (owner: Owner, session: string, id: string, data: JsonValue): Promise<Ticket | { readonly holder: GateHolder }> {
    return await this.enterUpTo(1, owner, session, id, data)
  }

  /** Queues up where fewer than `maxTickets` are in the queue, else says who is at its head. */
  async enterUpTo (maxTickets: number, owner: Owner, session: string, id: string, data: JsonValue): Promise<Ticket | { readonly holder: GateHolder }> {
    const { gates, ticketMs } = this.#options
    const place = await gates.enter(owner, session, { id, ms: ticketMs, data }, maxTickets)
    return place.kind === 'full' ? { holder: place.holder } : this.#hold(owner, session, id, place.head)
  }

  /** Takes a run out of its session's queue, whoever put it there, and wakes the next one. Idempotent. */
  async leave (owner: Owner, session: string, id: string): Promise<void> {
    const head = await this.#takeOut(owner, session, id)
    this.wake(owner, session)
    if (head !== undefined && !head.parked) this.#options.onTurn?.(owner, session, head)
  }

  /** The same for a queue in which nobody waits for his turn. */
  async withdraw (owner: Owner, session: string, id: string): Promise<void> {
    await this.#takeOut(owner, session, id)
  }

  async #takeOut (owner: Owner, session: string, id: string): Promise<GateHolder | undefined> {
    this.forget(owner, session, id)
    return await insist(() => this.#options.gates.leave(owner, session, id), LEAVE_PATIENCE_MS)
  }

  /** Prolongs a run's ticket no longer: it runs out by itself. For a run that is given up, and may be another node's. */
  forget (owner: Owner, session: string, id: string): void {
    for (const ticket of this.#tickets.get(textOf(owner, session)) ?? []) {
      if (ticket.id === id) this.#remove(ticket)
    }
  }

  /** Somebody left: the waiters of this node look again. */
  wake (owner: Owner, session: string): void {
    for (const ticket of this.#tickets.get(textOf(owner, session)) ?? []) ticket.renew()
  }

  /** Prolongs every ticket of this node. */
  beat (): void {
    for (const tickets of this.#tickets.values()) {
      for (const ticket of tickets) ticket.renew()
    }
  }

  #hold (owner: Owner, session: string, id: string, isHead: boolean): Ticket {
    const ticket = new HeldTicket(this.#options, owner, session, id, isHead, (parked) => { this.#remove(parked) })
    const key = textOf(owner, session)
    const tickets = this.#tickets.get(key)
    if (tickets === undefined) this.#tickets.set(key, new Set([ticket]))
    else tickets.add(ticket)
    return ticket
  }

  #remove (ticket: HeldTicket): void {
    ticket.forget()
    const key = textOf(ticket.owner, ticket.session)
    const tickets = this.#tickets.get(key)
    tickets?.delete(ticket)
    if (tickets?.size === 0) this.#tickets.delete(key)
  }
}

class HeldTicket implements Ticket {
  readonly owner: Owner
  readonly session: string
  readonly id: string
  readonly #options: GatesOptions
  readonly #onParked: (ticket: HeldTicket) => void
  #isHead: boolean
  #isKept = true
  #turn: Deferred<'head' | 'aborted' | 'out'> | undefined

  constructor (options: GatesOptions, owner: Owner, session: string, id: string, isHead: boolean, onParked: (ticket: HeldTicket) => void) {
    this.#options = options
    this.owner = owner
    this.session = session
    this.id = id
    this.#isHead = isHead
    this.#onParked = onParked
  }

  get isHead (): boolean {
    return this.#isHead
  }

  async wait (signal: AbortSignal): Promise<boolean> {
    if (this.#isHead) return true
    if (signal.aborted) return false
    const turn = this.#turn = deferred<'head' | 'aborted' | 'out'>()
    const onAbort = (): void => { turn.resolve('aborted') }
    signal.addEventListener('abort', onAbort, { once: true })
    // The head may have left between our entering and now.
    this.renew()
    const outcome = await turn.promise
    signal.removeEventListener('abort', onAbort)
    this.#turn = undefined
    if (outcome === 'out') throw new Error('The ticket ran out before its turn came.')
    return outcome === 'head'
  }

  /** Prolongs the ticket and looks where it stands. A failure is left to the next beat. */
  renew (): void {
    const { gates, ticketMs } = this.#options
    gates.renew(this.owner, this.session, this.id, ticketMs).then((place) => {
      if (!this.#isKept) return
      if (place.kind === 'out') {
        this.#turn?.resolve('out')
      } else if (place.head) {
        this.#isHead = true
        this.#turn?.resolve('head')
      }
    }, () => {})
  }

  async park (): Promise<void> {
    this.#onParked(this)
    const { gates } = this.#options
    await gates.renew(this.owner, this.session, this.id, undefined)
  }

  /** Prolongs it no longer. */
  forget (): void {
    this.#isKept = false
  }
}

function textOf (owner: Owner, session: string): string {
  return ownerText(owner) + session
}
