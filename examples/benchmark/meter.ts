import { setTimeout as sleep } from 'node:timers/promises'
import { type Usage } from './messages.ts'

const SAMPLE_MS = 25

/** Measures this process between two moments: its CPU time with all its threads, and its resident memory. */
export class Meter {
  #cpu = process.cpuUsage()
  #startedAt = 0
  #rssBefore = 0
  #rssPeak = 0
  #sampler: NodeJS.Timeout | undefined

  /** Starts; `gc` collects garbage before, for figures of memory. */
  async begin (gc: boolean): Promise<void> {
    if (gc) await collect()
    this.#rssBefore = this.#rssPeak = process.memoryUsage.rss()
    if (gc) this.#sampler = setInterval(() => this.#sample(), SAMPLE_MS)
    this.#startedAt = performance.now()
    this.#cpu = process.cpuUsage()
  }

  /** Stops. The peak is sampled every 25 ms, and only when `begin` was asked to collect. */
  async end (gc: boolean): Promise<Usage> {
    const cpu = process.cpuUsage(this.#cpu)
    const elapsedMs = performance.now() - this.#startedAt
    clearInterval(this.#sampler)
    this.#sample()
    const rssPeak = this.#rssPeak
    if (gc) await collect()
    return { cpuMicros: cpu.user + cpu.system, elapsedMs, rssBefore: this.#rssBefore, rssAfter: process.memoryUsage.rss(), rssPeak }
  }

  #sample (): void {
    this.#rssPeak = Math.max(this.#rssPeak, process.memoryUsage.rss())
  }
}

/** Collects until finalizers have run too; V8 gives pages back to the system a moment later. */
async function collect (): Promise<void> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await sleep(50)
  }
}
