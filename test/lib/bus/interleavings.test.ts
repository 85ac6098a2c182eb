import fc from 'fast-check'
import t from 'tap'
import { type Attachment, type AttachmentEnd, type BusEvent, type Cursor, EventBus, type Gap, type Sink, type Topic, type View } from '../../../lib/bus/index.ts'
import { delivered } from './recorder.ts'

const EVEN: View = { key: 'even', frame: (event, at) => event.seq % 2 === 0 ? { head: `${at.prevSeq}>${event.seq} `, data: event.data, tail: '\n' } : undefined }
const ALL: View = { key: 'all', frame: (event, at) => ({ head: `${at.prevSeq}>${event.seq} `, data: event.data, tail: '\n' }) }
const PREFIX = '{"id":"ü","result":'

type Step =
  | { readonly kind: 'append', readonly count: number, readonly size: number }
  | { readonly kind: 'attach', readonly room: number, readonly back: number | 'live' | 'start', readonly even: boolean, readonly wrapped: boolean, readonly ahead: boolean, readonly lossless: boolean, readonly maxLagBytes: number | undefined }
  | { readonly kind: 'drain' | 'close' | 'reattach', readonly reader: number, readonly room: number }
  | { readonly kind: 'store', readonly back: number }
  | { readonly kind: 'tick' }

const index = fc.nat({ max: 9 })
const room = fc.oneof(fc.constant(Infinity), fc.integer({ min: 1, max: 3 }))
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 12 }), size: fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 20_000 })) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('attach' as const), room, back: fc.oneof(fc.nat({ max: 30 }), fc.constantFrom('live' as const, 'start' as const)), even: fc.boolean(), wrapped: fc.boolean(), ahead: fc.boolean(), lossless: fc.boolean(), maxLagBytes: fc.option(fc.nat({ max: 5_000 }), { nil: undefined })
    })
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('drain' as const, 'close' as const, 'reattach' as const, 'drain' as const), reader: index, room }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('store' as const), back: fc.nat({ max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('tick' as const) }) }
)

/** A sink that checks every byte as it comes: the model is the list of all that was ever appended. */
class Checked implements Sink {
  attachment: Attachment | undefined
  /** Last sequence that it has had or was told to be gone. */
  seq: number
  ended: AttachmentEnd | undefined
  stalled = false
  gaps = 0
  readonly options: Step & { kind: 'attach' }
  #topic: Topic
  #all: readonly BusEvent[]
  #room: number

  constructor (topic: Topic, all: readonly BusEvent[], options: Step & { kind: 'attach' }) {
    this.#topic = topic
    this.#all = all
    this.options = options
    this.#room = options.room
    this.seq = this.start
  }

  get visible (): number {
    return this.options.ahead ? this.#topic.last : this.#topic.stored
  }

  get start (): number {
    const { back } = this.options
    if (back === 'live') return this.visible
    return back === 'start' ? 0 : Math.max(0, this.#topic.last - back)
  }

  attach (): void {
    const { back, even, wrapped, ahead, lossless, maxLagBytes } = this.options
    this.attachment = this.#topic.attach({
      view: even ? EVEN : ALL,
      sink: this,
      after: typeof back === 'number' ? { epoch: this.#topic.epoch, seq: this.start } : undefined,
      from: typeof back === 'number' ? undefined : back,
      upTo: ahead ? 'last' : 'stored',
      lossless,
      maxLagBytes: maxLagBytes === undefined || lossless ? undefined : maxLagBytes,
      wrap: wrapped ? { prefix: PREFIX, suffix: '}' } : undefined
    })
  }

  drain (room: number): void {
    this.#room = room
    this.stalled = false
    this.attachment?.resume()
  }

  write (chunk: Uint8Array): boolean {
    if (this.ended !== undefined || this.stalled) throw new Error('written to after it had said no')
    const text = Buffer.from(chunk).toString()
    if (!text.endsWith('\n')) throw new Error('torn frame')
    for (const line of text.slice(0, -1).split('\n')) this.#take(line)
    this.stalled = --this.#room <= 0
    return !this.stalled
  }

  gap ({ reason, oldest, last }: Gap): undefined {
    if (oldest !== this.#topic.oldest) throw new Error('the gap does not say what is kept')
    if (last !== this.visible) throw new Error('the gap says more than this reader may know')
    if (this.options.lossless && reason === 'lagged') throw new Error('a lossless reader has lost something')
    // Of events that went unframed, before this view was read, nobody knows whether they were in it; afterwards they do.
    const missing = reason === 'lagged' ? this.#next(this.seq, oldest) : this.seq + 1
    if (missing >= oldest) throw new Error('a gap where nothing that the reader could see is missing')
    if (this.options.back === 'live' && this.gaps === 0 && reason !== 'lagged') throw new Error('a live reader cannot miss the past')
    this.gaps++
    this.seq = oldest - 1
  }

  end (why: AttachmentEnd, cursor: Cursor): void {
    this.ended = why
    if (why === 'complete' && this.#next(this.seq, this.#topic.last + 1) <= this.#topic.last) throw new Error('ended before all was written')
    if (cursor.seq < this.seq) throw new Error('a cursor before what was written')
  }

  /** It has all that it may see, unless it stalls. */
  checkUpToDate (): void {
    if (this.stalled || this.ended !== undefined) return
    if (this.#next(this.seq, this.visible + 1) <= this.visible) throw new Error(`has ${this.seq} of ${this.visible}`)
  }

  #take (line: string): void {
    const seq = this.#next(this.seq, this.visible + 1)
    const event = this.#all[seq - 1]
    if (seq > this.visible || event === undefined) throw new Error(`more than there is: ${line.slice(0, 50)}`)
    const data = this.options.wrapped ? `${PREFIX}${event.data}}` : event.data
    const prev = Number(/^\d+/.exec(line)?.[0])
    if (line !== `${prev}>${seq} ${data}`) throw new Error(`expected ${seq}, got ${line.slice(0, 50)}`)
    // The predecessor in this view; where the one before is gone and was never framed, one less than what is kept.
    const inView = this.options.even ? seq - 2 : seq - 1
    if (prev !== inView && prev !== seq - 1 && !(inView === 0 && prev === 0)) throw new Error(`${seq} does not follow ${prev}`)
    this.seq = seq
  }

  /** The first event after a sequence that this view shows; `limit` if there is none before it. */
  #next (seq: number, limit: number): number {
    let next = seq + 1
    while (next < limit && this.options.even && next % 2 === 1) next++
    return next
  }
}

async function run (steps: readonly Step[], limits: { maxEvents: number, maxBytes: number }, manual: boolean, sliceMs: number): Promise<void> {
  const bus = new EventBus({ replay: limits, sliceMs })
  const topic = bus.topic('t', { watermark: manual ? 'manual' : 'append' })
  const all: BusEvent[] = []
  const readers: Checked[] = []
  let trimmed = 0
  topic.onTrim = (from, to) => {
    if (from !== trimmed + 1 || to < from || to > topic.stored) throw new Error(`trims ${from} to ${to}`)
    trimmed = to
  }
  const attach = (options: Step & { kind: 'attach' }): void => {
    const reader = new Checked(topic, all, options)
    readers.push(reader)
    reader.attach()
  }
  for (const step of steps) {
    const reader = 'reader' in step ? readers[step.reader] : undefined
    switch (step.kind) {
      case 'append':
        for (let n = 0; n < step.count; n++) {
          const data = 'xyzü'.charAt(all.length % 4).repeat(step.size)
          all.push({ seq: all.length + 1, data })
          if (topic.append({ data }) !== all.length) throw new Error('not dense')
        }
        break
      case 'attach': attach(step); break
      case 'drain': reader?.drain(step.room); break
      case 'close': reader?.attachment?.close(); if (reader !== undefined) reader.ended ??= 'closed'; break
      case 'reattach':
        if (reader === undefined) break
        reader.attachment?.close()
        reader.ended ??= 'closed'
        attach({ ...reader.options, room: step.room, back: topic.last - reader.seq })
        break
      case 'store': topic.markStored(Math.max(0, topic.last - step.back)); break
      case 'tick': await delivered()
    }
    if (topic.oldest !== trimmed + 1) throw new Error('dropped without a word')
    for (const reader of readers) if (reader.options.lossless && reader.ended === undefined && topic.oldest > reader.seq + 2) throw new Error('dropped what a lossless reader needs')
  }
  topic.end()
  topic.markStored(topic.last)
  await delivered()
  await delivered()
  for (const reader of readers) reader.checkUpToDate()
  for (const reader of readers) reader.drain(Infinity)
  for (const reader of readers) if (reader.ended === undefined) throw new Error('not ended')
  if (topic.readers !== 0) throw new Error('readers are left')
  if (topic.last - topic.oldest + 1 > limits.maxEvents || topic.bytes > limits.maxBytes) throw new Error('more is kept than may be')
  if (bus.bytes !== topic.bytes) throw new Error('miscounted')
  bus.close()
  if (bus.bytes !== 0) throw new Error('not freed')
}

t.test('whatever the order of events, each reader gets the sequence, with gaps only where they are told', async () => {
  const limits = fc.record({ maxEvents: fc.oneof(fc.constant(1_000), fc.nat({ max: 20 })), maxBytes: fc.oneof(fc.constant(1e9), fc.nat({ max: 50_000 })) })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), limits, fc.boolean(), fc.constantFrom(0, 60_000), run),
    { numRuns: 600 }
  )
})
