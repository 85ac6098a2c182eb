import { StoreFullError, StoreUnavailableError } from '../errors.ts'
import { StoreClosedError } from './errors.ts'
import type { LmdbSync } from './options.ts'
import type { Table } from './table.ts'

/** Milliseconds that a write which nobody hurries waits for others: each commit costs about as much as the writes in it. */
const LAZY_MS = 5

/** Bytes of such writes that are not made to wait any longer. */
const LAZY_BYTES = 65_536

/** What is said of a disk that takes no more; the last is LMDB's word for a write that was cut short. */
const FULL = ['No space left', 'Disk quota exceeded', 'File too large', 'MDB_MAP_FULL', 'Input/output error']

interface Job {
  /** Reads, decides and writes, within a transaction. A `StoreFullError` that it throws before it has written is its answer. */
  readonly act: () => unknown
  resolve (result: unknown): void
  reject (error: unknown): void
  outcome: { readonly result: unknown } | { readonly refusal: unknown } | undefined
}

/** What a queue is told of the fate of its batches. */
export interface WriteQueueHooks {
  /** Before a batch is committed, within its transaction. */
  beforeCommit (): void
  /** None of the batch's writes happened. */
  afterAbort (): void
}

/**
 * The one way to write: operations in the order they were asked for, those of one turn of the event loop in one transaction. The next batch
 * begins when the last one is visible, so that what one operation decides always stands on what those before it wrote.
 */
export class WriteQueue {
  readonly #table: Table
  readonly #sync: LmdbSync
  readonly #hooks: WriteQueueHooks
  #jobs: Job[] = []
  #lazyBytes = 0
  #isRunning = false
  #isHurried = false
  #isClosed = false
  #timer: NodeJS.Timeout | undefined
  #idle: (() => void)[] = []
  readonly #flushing = new Set<Promise<void>>()

  constructor (table: Table, sync: LmdbSync, hooks: WriteQueueHooks) {
    this.#table = table
    this.#sync = sync
    this.#hooks = hooks
  }

  /** Operations that wait for their transaction. */
  get size (): number { return this.#jobs.length }

  /** Performs an operation with the next batch. `lazyBytes`: it may wait a moment for others, and this is its size. */
  write<Result> (act: () => Result, lazyBytes?: number): Promise<Result> {
    if (this.#isClosed) return Promise.reject(new StoreClosedError())
    return new Promise<Result>((resolve, reject) => {
      this.#jobs.push({ act, resolve: resolve as (result: unknown) => void, reject, outcome: undefined }) // `act` gives what is resolved
      this.#schedule(lazyBytes)
    })
  }

  /** Takes nothing more; resolves when everything taken is done. */
  async close (): Promise<void> {
    this.#isClosed = true
    if (this.#jobs.length > 0) this.#hurry()
    if (this.#isRunning || this.#isHurried) await new Promise<void>((resolve) => { this.#idle.push(resolve) })
    await Promise.all(this.#flushing)
  }

  #schedule (lazyBytes: number | undefined): void {
    this.#lazyBytes += lazyBytes ?? LAZY_BYTES
    if (!this.#isRunning) this.#arm()
  }

  #arm (): void {
    if (this.#lazyBytes >= LAZY_BYTES) this.#hurry()
    // Not unref'ed: somebody waits for what is to be written.
    else if (!this.#isHurried) this.#timer ??= setTimeout(this.#run, LAZY_MS)
  }

  #hurry (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isHurried || this.#isRunning) return
    this.#isHurried = true
    setImmediate(this.#run)
  }

  readonly #run = async (): Promise<void> => {
    this.#timer = undefined
    this.#isHurried = false
    if (this.#isRunning) return
    this.#isRunning = true
    do {
      const jobs = this.#jobs
      this.#jobs = []
      this.#lazyBytes = 0
      await this.#commit(jobs)
    } while (this.#lazyBytes >= LAZY_BYTES || (this.#isClosed && this.#jobs.length > 0))
    this.#isRunning = false
    if (this.#jobs.length > 0) this.#arm()
    else for (const resolve of this.#idle.splice(0)) resolve()
  }

  async #commit (jobs: readonly Job[]): Promise<void> {
    try {
      await this.#table.transaction(() => {
        for (const job of jobs) perform(job)
        this.#hooks.beforeCommit()
      })
    } catch (error) {
      this.#hooks.afterAbort()
      if (jobs.length === 1) for (const job of jobs) job.reject(await asStoreError(error))
      // One of them can not be done: the others are not to suffer for it.
      else for (const job of jobs) await this.#commit([job])
      return
    }
    if (this.#sync === 'system') settle(jobs)
    else this.#settleWhenFlushed(jobs)
  }

  #settleWhenFlushed (jobs: readonly Job[]): void {
    const flushing = this.#table.flushed().then(() => { settle(jobs) }, async (error: unknown) => {
      const failure = await asStoreError(error)
      for (const job of jobs) job.reject(failure)
    }).finally(() => { this.#flushing.delete(flushing) })
    this.#flushing.add(flushing)
  }
}

function perform (job: Job): void {
  try {
    job.outcome = { result: job.act() }
  } catch (error) {
    if (!(error instanceof StoreFullError)) throw error
    job.outcome = { refusal: error }
  }
}

function settle (jobs: readonly Job[]): void {
  for (const { outcome, resolve, reject } of jobs) {
    if (outcome !== undefined && 'refusal' in outcome) reject(outcome.refusal)
    else resolve(outcome?.result)
  }
}

/** What went wrong, in the store's words. A commit that failed keeps its reason in a promise of its own. */
async function asStoreError (error: unknown): Promise<Error> {
  const reason: unknown = hasReason(error) ? await error.commitError.catch((why: unknown) => why) : error
  const text = reason instanceof Error ? reason.message : String(reason)
  if (FULL.some((words) => text.includes(words))) return new StoreFullError('what its disk takes', text)
  return new StoreUnavailableError('a write', { cause: reason })
}

function hasReason (error: unknown): error is { readonly commitError: Promise<unknown> } {
  return error instanceof Error && 'commitError' in error && error.commitError instanceof Promise
}
