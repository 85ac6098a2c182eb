import { type Attachment } from '../../../../lib/bus/index.ts'
import { type Run } from '../../../../lib/runs/index.ts'
import { LEDGER_LEVELS, ledgerView } from '../../../helpers/ledger-protocol.ts'

/** A line as it came, or a gap that was told in the place of lines. */
export type Heard =
  | { readonly kind: 'line', readonly prevSeq: number, readonly seq: number, readonly data: string }
  | { readonly kind: 'gap', readonly reason: string, readonly oldest: number }

/** How somebody listens to a run. */
export interface ListenOptions {
  readonly level?: keyof typeof LEDGER_LEVELS
  readonly after?: number
  /** Epoch of the cursor. @default the run's present one */
  readonly epoch?: string
  /** The run's own caller: ahead of the store, and waited for. */
  readonly isOwn?: boolean
  /** Ahead of the store, and not waited for: the test's own eyes. */
  readonly isWatching?: boolean
}

/** Somebody who listens to a run, takes what comes until told not to, and keeps all of it. */
export class Listener {
  readonly heard: Heard[] = []
  readonly level: keyof typeof LEDGER_LEVELS
  readonly after: number
  readonly isOwn: boolean
  /** Why the run ended the listening; `undefined` while it goes on, and for one who left. */
  end: string | undefined
  hasLeft = false
  /** Since when nothing is taken. */
  stalledAt: number | undefined
  /** What was seen before it was stored, by somebody who must not. */
  readonly early: number[] = []
  readonly #attachment: Attachment
  readonly #readsAhead: boolean

  constructor (run: Run, options: ListenOptions = {}) {
    this.level = options.level ?? 'verbose'
    this.after = options.after ?? 0
    this.isOwn = options.isOwn === true
    this.#readsAhead = this.isOwn || options.isWatching === true
    const { topic } = run
    this.#attachment = topic.attach({
      view: ledgerView(this.level),
      upTo: this.#readsAhead ? 'last' : 'stored',
      lossless: this.isOwn,
      ...this.after > 0 && { after: { epoch: options.epoch ?? topic.epoch, seq: this.after } },
      sink: {
        write: (chunk) => {
          for (const line of Buffer.from(chunk).toString('latin1').split('\n')) {
            if (line === '') continue
            const [, prevSeq, seq, data = ''] = /^(\d+) (\d+) (.*)$/.exec(line) ?? []
            this.heard.push({ kind: 'line', prevSeq: Number(prevSeq), seq: Number(seq), data })
            if (!this.#readsAhead && Number(seq) > topic.stored) this.early.push(Number(seq))
          }
          return this.stalledAt === undefined
        },
        gap: ({ reason, oldest }) => { this.heard.push({ kind: 'gap', reason, oldest }) },
        end: (why) => { this.end = why }
      }
    })
  }

  /** Sequence of the last line. */
  get seq (): number {
    const last = this.heard.findLast((item) => item.kind === 'line')
    return last?.kind === 'line' ? last.seq : this.after
  }

  get lagBytes (): number {
    return this.#attachment.lagBytes
  }

  /** Still listening. */
  get isOpen (): boolean {
    return this.end === undefined && !this.hasLeft
  }

  takeOn (): void {
    this.stalledAt = undefined
    this.#attachment.resume()
  }

  leave (): void {
    if (this.isOpen) this.hasLeft = true
    this.#attachment.close()
  }

  /** What is wrong with what was heard, given every event of the run by its sequence. */
  * problems (events: ReadonlyMap<number, string>): Generator<string> {
    const isVisible = (seq: number): boolean => levelOf(events.get(seq)) <= LEDGER_LEVELS[this.level]
    let seq = this.after
    let isNext = false
    for (const item of this.heard) {
      if (item.kind === 'gap') {
        if (this.isOwn && this.heard[0] !== item) yield `the caller was told of a gap (${item.reason})`
        if (item.oldest <= seq + 1 && item.reason === 'lagged') yield `a gap before ${item.oldest} was told after ${seq}`
        isNext = false
        seq = Math.max(seq, item.oldest - 1)
        continue
      }
      if (item.seq <= seq) yield `${item.seq} after ${seq}`
      for (let between = seq + 1; between < item.seq; between++) if (isVisible(between)) yield `${between} is missing before ${item.seq}`
      const data = events.get(item.seq)
      if (data !== item.data) yield `${item.seq} is ${item.data.slice(0, 80)}, not ${data?.slice(0, 80)}`
      if (!isVisible(item.seq)) yield `${item.seq} is too detailed`
      if (isNext && item.prevSeq !== seq) yield `${item.seq} says that ${item.prevSeq} is before it, not ${seq}`
      isNext = true
      seq = item.seq
    }
    if (this.early.length > 0) yield `${this.early.join()} were seen before they were stored`
  }
}

/** The level of detail of an event of either protocol. */
export function levelOf (data = '{}'): number {
  const { kind } = JSON.parse(data) as { readonly kind?: string }
  if (kind === 'event') return LEDGER_LEVELS.verbose
  return kind === 'text' || kind === 'text-end' ? LEDGER_LEVELS.full : LEDGER_LEVELS.status
}
