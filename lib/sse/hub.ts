import { readMs } from '../options.ts'
import { SseClosingError } from './errors.ts'
import { encodeFrame } from './frame.ts'
import { type SseReply } from './headers.ts'
import { type SseObserver } from './observer.ts'
import { spreadRetry } from './retry.ts'
import { SseResponse, type SseResponseOwner } from './response.ts'
import { Wheel } from './wheel.ts'
import { ChunkFramer } from './wire.ts'

/** Times of all streams of a hub, in milliseconds. */
export interface SseHubOptions {
  /** Silence before a heartbeat comment is written; 0 turns it off. Minimum 1,000. @default 15000 */
  readonly heartbeatMs?: number | undefined
  /** How long a client may take nothing of what waits for it before its connection is dropped; 0 turns it off. Minimum 1,000. @default 30000 */
  readonly writeTimeoutMs?: number | undefined
  /** Longest life of a stream, whatever it does; 0 for no limit. Minimum 1,000. @default 0 */
  readonly streamTimeoutMs?: number | undefined
  /** How long `close()` waits for clients to take the rest before it drops them. @default 2000 */
  readonly closeTimeoutMs?: number | undefined
  /** Text of the heartbeat, a whole block. @default ': heartbeat\n\n' */
  readonly heartbeat?: string | undefined
  /** Who watches the streams. @default nobody */
  readonly observer?: SseObserver | undefined
  /**
   * The block that ends a stream which the client may take up again: `cursorId` is the id to come back with, `lagged` stands for a
   * reader that fell behind, `stopped` for a topic that was closed under it. @default the id and a `retry` of half a second to five
   */
  readonly farewell?: ((cursorId: string | undefined, why: Farewell) => string) | undefined
}

/** Why a stream ends that its client may take up again. */
export type Farewell = 'timeout' | 'closed' | 'lagged' | 'stopped'

/** Deadlines are met to an eighth of the shortest one, and to this many milliseconds at the worst. */
const MAX_TICK_MS = 1_000
const PARTS = 8

/**
 * The open streams of one plugin scope: one timer for all their heartbeats and deadlines, and one place that ends them.
 * Call {@link SseHub.close} in `preClose`: in `onClose` the server waits for the very streams it would end.
 */
export class SseHub {
  readonly #owner: SseResponseOwner
  readonly #closeTimeoutMs: number
  readonly #observer: SseObserver | undefined
  readonly #streams = new Set<SseResponse>()
  #closing: Promise<void> | undefined
  #onEmpty: (() => void) | undefined

  /** @throws AGT_ERR_OPTION_INVALID */
  constructor (options: SseHubOptions = {}) {
    const heartbeatMs = readMs('heartbeatMs', options.heartbeatMs, { default: 15_000, min: 1_000, zeroIsOff: true })
    const writeTimeoutMs = readMs('writeTimeoutMs', options.writeTimeoutMs, { default: 30_000, min: 1_000, zeroIsOff: true })
    const streamTimeoutMs = readMs('streamTimeoutMs', options.streamTimeoutMs, { default: 0, min: 1_000, zeroIsOff: true })
    this.#observer = options.observer
    this.#closeTimeoutMs = readMs('closeTimeoutMs', options.closeTimeoutMs, { default: 2_000 })
    const shortest = Math.min(...[heartbeatMs, writeTimeoutMs, streamTimeoutMs].filter((ms) => ms > 0))
    const wheel = new Wheel(Math.min(MAX_TICK_MS, Math.floor(shortest / PARTS)))
    this.#owner = {
      wheel,
      framer: new ChunkFramer(),
      heartbeat: Buffer.from(options.heartbeat ?? encodeFrame({ comment: 'heartbeat' })),
      heartbeatTicks: heartbeatMs === 0 ? 0 : wheel.ticks(heartbeatMs),
      writeTicks: writeTimeoutMs === 0 ? 0 : wheel.ticks(writeTimeoutMs),
      streamTicks: streamTimeoutMs === 0 ? 0 : wheel.ticks(streamTimeoutMs),
      farewell: options.farewell ?? farewell,
      onClosed: (response) => this.#forget(response)
    }
  }

  /** Number of streams whose connection has not let go of them yet. */
  get size (): number {
    return this.#streams.size
  }

  /**
   * Takes the reply over and sends the stream's head: the headers the reply carries so far, and our own.
   * A HEAD is answered by the head alone and is over at once.
   *
   * @param about what the stream is of, for the hub's observer alone
   * @throws AGT_ERR_SSE_CLOSING (503) while the reply can still be answered otherwise
   */
  open (reply: SseReply, about?: unknown): SseResponse {
    if (this.#closing !== undefined) throw new SseClosingError()
    const response = new SseResponse(reply, this.#owner, this.#observer?.opened(reply, about))
    this.#streams.add(response)
    return response
  }

  /** Ends every stream with a usable cursor; resolves when all connections have let go, at the latest after `closeTimeoutMs`. */
  close (): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close (): Promise<void> {
    for (const stream of this.#streams) stream.close()
    if (this.#streams.size === 0) return
    await new Promise<void>((resolve) => {
      // Not unref'ed: the process has to live until the last stream is let go.
      const timer = setTimeout(() => {
        for (const stream of this.#streams) stream.destroy('closed')
      }, this.#closeTimeoutMs)
      this.#onEmpty = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #forget (response: SseResponse): void {
    this.#streams.delete(response)
    if (this.#streams.size === 0) this.#onEmpty?.()
  }
}

function farewell (cursorId: string | undefined): string {
  const retry = spreadRetry()
  return cursorId === undefined ? encodeFrame({ retry }) : encodeFrame({ id: cursorId, retry })
}
