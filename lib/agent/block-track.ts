import type { AgentEventInitOf } from './events.ts'
import type { MessageBuilder } from './message-builder.ts'
import { type OpenItem, type Outlet, remove } from './open-item.ts'

/** Kinds of content blocks that stream. */
export type BlockKind = 'text' | 'thinking' | 'data'

type Start = AgentEventInitOf<'TEXT_BLOCK_START' | 'THINKING_BLOCK_START' | 'DATA_BLOCK_START'>
type End = AgentEventInitOf<'TEXT_BLOCK_END' | 'THINKING_BLOCK_END' | 'DATA_BLOCK_END'>

const startTypes = { text: 'TEXT_BLOCK_START', thinking: 'THINKING_BLOCK_START', data: 'DATA_BLOCK_START' } as const
const deltaTypes = { text: 'TEXT_BLOCK_DELTA', thinking: 'THINKING_BLOCK_DELTA', data: 'DATA_BLOCK_DELTA' } as const
const endTypes = { text: 'TEXT_BLOCK_END', thinking: 'THINKING_BLOCK_END', data: 'DATA_BLOCK_END' } as const

/** How an event names a block; each may be missing. */
export interface BlockName {
  readonly replyId?: string | undefined
  readonly blockId?: string | undefined
}

/** The text, thinking and data blocks of one source (agent-events 9.3, invariants 2 to 4). */
export class BlockTrack {
  readonly #outlet: Outlet
  readonly #message: MessageBuilder | undefined
  readonly #open = new Map<string, OpenItem>()
  /** How often a block id was used within its reply: the reference uses constants again. */
  readonly #used = new Map<string, number>()

  constructor (outlet: Outlet, message: MessageBuilder | undefined) {
    this.#outlet = outlet
    this.#message = message
  }

  start (kind: BlockKind, event: Start, step: string): void {
    const replyId = event.replyId || step
    const key = keyOf(kind, replyId, event.blockId)
    const before = this.#open.get(key)
    if (before !== undefined) {
      this.#outlet.repair('closed', 'missing-end', endTypes[kind], before.id)
      this.close(before)
    }
    this.#begin(kind, event, replyId, key)
  }

  /** The block that a delta continues, opened if it is not. */
  continue (kind: BlockKind, name: BlockName, step: string): OpenItem {
    const item = this.#find(kind, name)
    if (item !== undefined) return item
    this.#outlet.repair('inserted', 'missing-start', startTypes[kind], name.blockId)
    const replyId = name.replyId || step
    const type = startTypes[kind]
    return this.#begin(kind, { type, ...name.blockId !== undefined && { blockId: name.blockId } }, replyId, keyOf(kind, replyId, name.blockId))
  }

  end (kind: BlockKind, event: End): void {
    const item = this.#find(kind, event)
    if (item === undefined) this.#outlet.repair('dropped', 'not-open', event.type, event.blockId)
    else this.close(item, event)
  }

  /** Ends an open block; `event` is the agent's own end. */
  close (item: OpenItem, event?: End): void {
    const outlet = this.#outlet
    if (item.held !== '') {
      item.held = ''
      outlet.sendDelta(item, '\ufffd', {})
    }
    this.#open.delete(item.key)
    remove(outlet.open, item)
    if (item.part !== undefined && event?.metadata !== undefined) item.part.metadata = event.metadata
    const kind = item.kind as BlockKind // Only #begin makes items of this track.
    outlet.send({ ...event, type: endTypes[kind], replyId: item.replyId, blockId: item.id })
  }

  /** An id for a block that was not used in its reply. */
  uniqueId (replyId: string, wanted: string): string {
    const base = `${replyId}\0${wanted}`
    let id = wanted
    let n = this.#used.get(base) ?? 0
    while (this.#used.has(`${replyId}\0${id}`)) id = `${wanted}-${++n + 1}`
    this.#used.set(base, n)
    this.#used.set(`${replyId}\0${id}`, 0)
    return id
  }

  #begin (kind: BlockKind, event: Start, replyId: string, key: string): OpenItem {
    const id = this.uniqueId(replyId, event.blockId || kind)
    const outlet = this.#outlet
    outlet.send({ ...event, type: startTypes[kind], replyId, blockId: id })
    const part = this.#message?.add(kind, id)
    if (part !== undefined && event.type === 'DATA_BLOCK_START') {
      part.name = event.name ?? ''
      part.mediaType = event.mediaType
      part.url = event.url
    }
    const item: OpenItem = {
      kind, deltaType: deltaTypes[kind], source: outlet.source, replyId, id, name: '', rawId: event.blockId, key, held: '', isBlank: true, part
    }
    this.#open.set(key, item)
    outlet.open.push(item)
    return item
  }

  /** By both names; what an event leaves out is taken from the block opened last. */
  #find (kind: BlockKind, { replyId, blockId }: BlockName): OpenItem | undefined {
    if (replyId && blockId) return this.#open.get(keyOf(kind, replyId, blockId))
    return this.#outlet.open.findLast((item) => item.kind === kind &&
      (!replyId || item.replyId === replyId) && (!blockId || item.rawId === blockId))
  }
}

function keyOf (kind: BlockKind, replyId: string, blockId: string | undefined): string {
  return `${kind}\0${replyId}\0${blockId ?? ''}`
}
