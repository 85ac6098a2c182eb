/** Longest wait between two looks, in multiples of the first. */
const MAX_FACTOR = 6

/** What a {@link SilenceWatch} does. */
export interface SilenceWatchOptions {
  /** Milliseconds of silence before the first look; each further one waits longer. */
  readonly silenceMs: number
  /** Milliseconds that must stay silent after a look before the stream is given up. */
  readonly settleMs: number
  /** Whether nothing more is to be expected, or something is that does not come. Its failures count as no. */
  readonly look: (signal: AbortSignal) => Promise<boolean>
  /** Called once, when the stream is of no more use. */
  readonly onSilent: () => void
}

/**
 * Looks after a stream that says nothing: some services keep it open when all has been said, and some proxies when it is dead.
 */
export class SilenceWatch {
  readonly #options: SilenceWatchOptions
  readonly #controller = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #factor = 1
  /** Counts what is heard, so that a look that was overtaken says nothing. */
  #heard = 0

  constructor (options: SilenceWatchOptions) {
    this.#options = options
  }

  /** The next event is waited for. `isLast`: none should come for a while, so a look is due soon. */
  listen (isLast: boolean): void {
    this.#factor = 1
    this.#arm(isLast ? this.#options.settleMs : this.#options.silenceMs)
  }

  /** It has come, and nobody waits for another one at the moment. */
  rest (): void {
    this.#heard++
    clearTimeout(this.#timer)
  }

  stop (): void {
    this.rest()
    this.#controller.abort()
  }

  #arm (ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#look, ms).unref()
  }

  readonly #look = async (): Promise<void> => {
    const heard = this.#heard
    const isUseless = await this.#options.look(this.#controller.signal).catch(() => false) // the stream itself tells of a lost service
    if (heard !== this.#heard) return
    if (isUseless) {
      this.#timer = setTimeout(this.#options.onSilent, this.#options.settleMs).unref()
    } else {
      this.#factor = Math.min(this.#factor * 2, MAX_FACTOR)
      this.#arm(this.#options.silenceMs * this.#factor)
    }
  }
}
