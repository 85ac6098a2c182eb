import { type FastifyReply } from 'fastify'
import { ownerText, type Owner } from '../../lib/stores/index.ts'
import { StreamLimitError } from './errors.ts'

/**
 * Limits the streams that one owner has open, counted in this process: streams are sockets, which a node that dies takes with it. Behind
 * a balancer an owner may have as many on each node.
 */
export class StreamLimit {
  readonly #maxStreams: number
  readonly #open = new Map<string, number>()

  constructor (maxStreams: number) {
    this.#maxStreams = maxStreams
  }

  /** Counts the reply until its connection has let go of it, whatever it becomes: a stream, a refusal, nothing. @throws AGT_ERR_STREAM_LIMIT */
  take (owner: Owner, reply: FastifyReply): void {
    const text = ownerText(owner)
    const count = this.#open.get(text) ?? 0
    if (count >= this.#maxStreams) throw new StreamLimitError(this.#maxStreams)
    const { raw } = reply
    // It will not close again.
    if (isClosed(raw)) return
    this.#open.set(text, count + 1)
    raw.once('close', () => { this.#leave(text) })
  }

  #leave (text: string): void {
    const count = this.#open.get(text) ?? 0
    if (count > 1) this.#open.set(text, count - 1)
    else this.#open.delete(text)
  }
}

/** HTTP/2's response does not say so itself. */
function isClosed (raw: FastifyReply['raw'] & { readonly stream?: { readonly closed: boolean } }): boolean {
  return (raw.stream ?? raw).closed
}
