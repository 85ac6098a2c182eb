import type { Msg } from './message.ts'

/** Who interrupted a run. */
export type InterruptSource = 'user' | 'tool' | 'system'

/**
 * The abort reason of a run that should end gracefully, with what it has so far (agent-events 9.4).
 *
 * Its name is `AbortError`: `fetch` rejects with the reason itself, and several model SDKs take any other name for a failure.
 */
export class RunInterrupted extends Error {
  override readonly name = 'AbortError'
  readonly source: InterruptSource
  /** Message that the model should see at the next turn. */
  readonly msg: Msg | undefined

  constructor (source: InterruptSource, options: { readonly message?: string, readonly msg?: Msg, readonly cause?: unknown } = {}) {
    super(options.message ?? `The run was interrupted by ${source}.`, 'cause' in options ? { cause: options.cause } : undefined)
    this.source = source
    this.msg = options.msg
  }
}
