import type { JsonValue } from '../../agent/json.ts'
import type { EnterResult, GateHolder, GatePlace, GateStore, GateTicket, RenewTicketResult } from '../gates.ts'
import type { OperationName } from '../operations.ts'
import type { Owner } from '../run-key.ts'
import type { Argument } from './connection.ts'
import { frozen } from './frozen.ts'
import type { RedisParts } from './parts.ts'
import type { Script } from './script.ts'
import { ENTER, LEAVE, RENEW_TICKET } from './scripts/gates.ts'

/** A holder as scripts answer it. */
type Holder = readonly [id: string, parked: number | string, data: string | null]

/** {@link GateStore} in Redis: the queue of a session is a sorted set, another one knows which tickets run out when. */
export class RedisGates implements GateStore {
  readonly #parts: RedisParts

  constructor (parts: RedisParts) {
    this.#parts = parts
  }

  async enter (owner: Owner, session: string, { id, ms, data }: GateTicket, maxTickets?: number): Promise<EnterResult> {
    const json = data === undefined ? '' : JSON.stringify(data)
    const answer = await this.#run('gates.enter', ENTER, owner, session, id, ms ?? '', json, maxTickets === undefined || maxTickets === Infinity ? '' : maxTickets)
    const [kind, value] = answer as ['full', Holder] | ['in', number] // as the script answers
    return kind === 'full' ? { kind, holder: holderOf(value) } : placeOf(answer)
  }

  async renew (owner: Owner, session: string, id: string, ms: number | undefined): Promise<RenewTicketResult> {
    const answer = await this.#run('gates.renew', RENEW_TICKET, owner, session, id, ms ?? '')
    const [kind] = answer as ['in' | 'out'] // as the script answers
    return kind === 'out' ? { kind } : placeOf(answer)
  }

  async leave (owner: Owner, session: string, id: string): Promise<GateHolder | undefined> {
    const holder = await this.#run('gates.leave', LEAVE, owner, session, id) as Holder | null // as the script answers
    return holder === null ? undefined : holderOf(holder)
  }

  async holder (owner: Owner, session: string): Promise<GateHolder | undefined> {
    const holder = await this.#run('gates.holder', LEAVE, owner, session, undefined) as Holder | null // as the script answers
    return holder === null ? undefined : holderOf(holder)
  }

  #run (operation: OperationName, script: Script, owner: Owner, session: string, id: string | undefined, ...args: readonly Argument[]): Promise<unknown> {
    const { connection, keys, options } = this.#parts
    return connection.runTimed(operation, script, keys.gate(owner, session), options.idleTtlMs, id === undefined ? '' : JSON.stringify(id), ...args)
  }
}

function placeOf (answer: unknown): GatePlace {
  const [, rank, holder] = answer as readonly ['in', number | string, Holder] // as the scripts answer
  const position = Number(rank)
  return { kind: 'in', head: position === 0, position, holder: holderOf(holder) }
}

function holderOf ([id, parked, data]: Holder): GateHolder {
  return frozen({ id: JSON.parse(id) as string, parked: Number(parked) === 1, ...data != null && { data: JSON.parse(data) as JsonValue } })
}
