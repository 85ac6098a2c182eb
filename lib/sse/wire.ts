import { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { type RawResponse } from './headers.ts'

/** Silence before the kernel asks whether the peer is still there, in milliseconds. */
const TCP_KEEPALIVE_MS = 60_000

/** Larger chunks are not copied. */
const MAX_COPY = 4 * 1024

const CRLF = '\r\n'
const NO_BYTES = Buffer.alloc(0)

/**
 * Frames small chunks for HTTP/1.1's chunked encoding by itself, so that one event is one write on the socket: node's
 * response makes four of it, and a `writev`. A chunk that goes to many readers one after the other is framed once.
 * RFC 9112, 7.1.
 */
export class ChunkFramer {
  #chunk: Uint8Array = NO_BYTES
  #framed: Buffer = NO_BYTES

  /** The chunk with its length before and a line end behind it; a new buffer that is never changed. */
  frame (chunk: Uint8Array): Buffer {
    if (chunk === this.#chunk) return this.#framed
    const head = chunk.length.toString(16) + CRLF
    const framed = Buffer.allocUnsafe(head.length + chunk.length + 2)
    framed.write(head, 0, 'latin1')
    framed.set(chunk, head.length)
    framed.write(CRLF, head.length + chunk.length, 'latin1')
    this.#chunk = chunk
    this.#framed = framed
    return framed
  }

  /** Whether the chunk is small enough to be copied rather than written in pieces. */
  takes (chunk: Uint8Array): boolean {
    return chunk.length > 0 && chunk.length <= MAX_COPY
  }
}

/** The connection below an HTTP/1 response; undefined under HTTP/2 and in `inject()`. */
export function connectionOf (raw: RawResponse): Socket | undefined {
  return raw instanceof ServerResponse && raw.socket instanceof Socket ? raw.socket : undefined
}

/** Gathers what is written in this tick into one system call: a head with the first events, the last events with the end. */
export function corkTick (connection: Socket): void {
  connection.cork()
  process.nextTick(uncork, connection)
}

function uncork (connection: Socket): void {
  connection.uncork()
}

/** Has the kernel look for peers that are gone, which a stream without heartbeats would never notice. */
export function keepAlive (connection: Socket): void {
  connection.setKeepAlive(true, TCP_KEEPALIVE_MS)
}

/**
 * Whether chunks framed by {@link ChunkFramer} may go to the connection itself: the head has left in chunked encoding, and
 * nobody has put another `write` over the response's.
 */
export function takesChunks (raw: RawResponse): boolean {
  return raw instanceof ServerResponse && raw.chunkedEncoding && raw.write === ServerResponse.prototype.write
}
