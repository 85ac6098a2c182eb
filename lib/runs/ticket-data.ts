import { isObject } from '../agent/index.ts'
import { type GateHolder } from '../stores/index.ts'

/** What a ticket says of its run. */
export interface TicketData {
  readonly clientId: string
  readonly protocol: string
  /** Node that queues, or executes, the run. */
  readonly node: string
}

/** What the holder of a session says of its run; empty texts where the ticket was written by something else. */
export function ticketOf ({ data }: GateHolder): TicketData {
  const { clientId, protocol, node }: Record<string, unknown> = isObject(data) ? data : {}
  return { clientId: textOf(clientId), protocol: textOf(protocol), node: textOf(node) }
}

function textOf (value: unknown): string {
  return typeof value === 'string' ? value : ''
}
