import { type RawResponse } from './headers.ts'

/** Somebody who waits for an answer, and may leave before it comes. */
export interface ReplyLeft {
  /** Resolves when the client is gone before it was answered; pending for ever otherwise. Never rejects. */
  readonly left: Promise<void>
  /** Listens no longer; call it on every path. */
  stop (): void
}

/**
 * Watches for a client that leaves while its answer is prepared. Only the response tells: the request's own `close` comes as soon as its
 * body has been read.
 */
export function replyLeft ({ raw }: { readonly raw: RawResponse }): ReplyLeft {
  let resolve = (): void => {}
  const left = new Promise<void>((_resolve) => { resolve = _resolve })
  const onClose = (): void => { if (!raw.writableFinished) resolve() }
  raw.once('close', onClose)
  // It came before anybody listened.
  if (raw.destroyed) resolve()
  return { left, stop: () => { raw.off('close', onClose) } }
}
