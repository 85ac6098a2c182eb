import { type DeltaBlock, deltaBlock, type EventSink } from './sink.ts'

interface OpenBlock {
  readonly scope: string
  readonly replyId: string
  readonly blockId: string
  readonly block: DeltaBlock
}

/**
 * The open text or reasoning messages (sections 9.3, 10). A message starts with its first piece of text, and an id once ended is never
 * continued: what comes under the same block after something else is a message of its own.
 */
export class MessageBlocks {
  readonly #kind: 'TEXT_MESSAGE' | 'REASONING_MESSAGE'
  readonly #out: EventSink
  #open: OpenBlock[] = []

  constructor (kind: 'TEXT_MESSAGE' | 'REASONING_MESSAGE', out: EventSink) {
    this.#kind = kind
    this.#out = out
  }

  /** The block's open message. Few are open at once, so looking through them beats building a key for each delta. */
  find (scope: string, replyId: string, blockId: string): DeltaBlock | undefined {
    for (const open of this.#open) {
      if (open.blockId === blockId && open.replyId === replyId && open.scope === scope) return open.block
    }
    return undefined
  }

  /** Opens a message for a block and returns where its deltas go. */
  start (scope: string, replyId: string, blockId: string, messageId: string): DeltaBlock {
    const block = deltaBlock(`${this.#kind}_CONTENT`, messageId)
    this.#open.push({ scope, replyId, blockId, block })
    this.#out.event(this.#kind === 'TEXT_MESSAGE'
      ? { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }
      : { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' })
    return block
  }

  /** Ends one block's message, if it is open. */
  end (scope: string, replyId: string, blockId: string): void {
    this.#end((open) => open.blockId === blockId && open.replyId === replyId && open.scope === scope)
  }

  /** Ends the messages of one reply. */
  endReply (scope: string, replyId: string): void {
    this.#end((open) => open.replyId === replyId && open.scope === scope)
  }

  /** Ends all. */
  endAll (): void {
    this.#end(() => true)
  }

  #end (which: (open: OpenBlock) => boolean): void {
    if (this.#open.length === 0) return
    const ending = this.#open.filter(which)
    if (ending.length === 0) return
    this.#open = this.#open.filter((open) => !ending.includes(open))
    for (const { block } of ending) this.#out.event({ type: `${this.#kind}_END`, messageId: block.id })
  }
}
