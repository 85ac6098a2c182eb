import {
  type AttachmentEnd, type BusEvent, type Cursor, EventBus, type EventBusOptions, type Gap, type GapAnswer, type Position, type Sink, type Topic, type TopicOptions, type View
} from '../../../lib/bus/index.ts'

/** Frames an event as a client would see it: `id`, the sequence before it in this view, and the data. */
export function lines (options: { key?: string, keep?: (event: BusEvent) => boolean } = {}): View & { readonly framed: number[] } {
  const framed: number[] = []
  return {
    key: options.key ?? 'lines',
    framed,
    frame (event: BusEvent, at: Position) {
      framed.push(event.seq)
      if (options.keep?.(event) === false) return undefined
      return { head: `${at.prevSeq}>${event.seq} ${event.event === undefined ? '' : `${event.event} `}`, data: event.data, tail: '\n' }
    }
  }
}

/** A sink that keeps what it is given, and takes only so many writes before it stalls. */
export class Recorder implements Sink {
  readonly chunks: Uint8Array[] = []
  readonly gaps: Gap[] = []
  readonly ends: (readonly [AttachmentEnd, Cursor['seq']])[] = []
  /** Writes after which it says no. */
  room: number
  answer: ((gap: Gap) => GapAnswer) | undefined
  onWrite: (() => void) | undefined
  onEnd: (() => void) | undefined

  constructor (room = Infinity) {
    this.room = room
  }

  get text (): string {
    return Buffer.concat(this.chunks).toString()
  }

  /** Sequences of the frames of {@link lines}, gaps as `gap`. */
  get seqs (): (number | string)[] {
    return this.text.split('\n').slice(0, -1).map((line) => {
      const seq = /^\d+>(\d+) /.exec(line)?.[1]
      return seq === undefined ? line : Number(seq)
    })
  }

  write (chunk: Uint8Array): boolean {
    this.chunks.push(chunk)
    this.onWrite?.()
    return --this.room > 0
  }

  gap (gap: Gap): GapAnswer {
    this.gaps.push(gap)
    return this.answer === undefined ? 'gap\n' : this.answer(gap)
  }

  end (why: AttachmentEnd, cursor: Cursor): void {
    this.ends.push([why, cursor.seq])
    this.onEnd?.()
  }
}

/** Waits until everything that was scheduled by now is delivered. */
export async function delivered (): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve))
}

/** The numbers from one to another. */
export function range (from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

/** Everything that an iterable gives until it ends. */
export async function collect<T> (iterable: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of iterable) items.push(item)
  return items
}

/** A topic of a bus that ends with the test. */
export function makeTopic (t: { teardown (fn: () => unknown): unknown }, options?: EventBusOptions, topicOptions?: TopicOptions): { readonly bus: EventBus, readonly topic: Topic } {
  const bus = new EventBus(options)
  t.teardown(() => bus.close())
  return { bus, topic: bus.topic('t', topicOptions) }
}
