import { type IdPool } from './ids.ts'

interface Reply {
  /** The assistant message that a tool call of the reply belongs to. */
  parent: string | undefined
}

/**
 * The assistant messages of each reply (section 9.3). The first one carries the reply's own id, which agents persist; calls of one
 * model call share one message, as providers want them back.
 */
export class Replies {
  readonly #ids: IdPool
  readonly #replies = new Map<string, Reply>()

  constructor (ids: IdPool) {
    this.#ids = ids
  }

  /** Id of the message a new text block becomes; tool calls that follow belong to it. */
  textMessage (scope: string, replyId: string, blockId: string): string {
    const key = keyOf(scope, replyId)
    const id = this.#ids.take(this.#replies.has(key) ? `${replyId}:${blockId}` : replyId)
    this.#replies.set(key, { parent: id })
    return id
  }

  /** Id of the message a new tool call belongs to: the reply's latest text, or one that the reply's calls share. */
  parentOf (scope: string, replyId: string, toolCallId: string): string {
    const key = keyOf(scope, replyId)
    const reply = this.#replies.get(key)
    if (reply?.parent !== undefined) return reply.parent
    const parent = this.#ids.take(reply === undefined ? replyId : `${replyId}:${toolCallId}`)
    this.#replies.set(key, { parent })
    return parent
  }

  /** A call of the reply has its result: the next call is another step, and another message, even where the agent goes on under the same reply. */
  answered (scope: string, replyId: string): void {
    const reply = this.#replies.get(keyOf(scope, replyId))
    if (reply !== undefined) reply.parent = undefined
  }
}

function keyOf (scope: string, replyId: string): string {
  return scope === '' ? replyId : `${scope}\n${replyId}`
}
