import { type Run } from '../../lib/runs/index.ts'
import { denyAll } from './decisions.ts'
import { resumeWith } from './resume.ts'
import { ownerAsCaller, type PauseWatch, type TaskScope } from './scope.ts'
import { openInterrupts } from './snapshot.ts'

/** Milliseconds after a pause's end at which it is looked at, so that the store's clock has passed it too. */
const SLACK_MS = 20

/** Ends pauses that last too long: by a timer here, on another node or in a later life of this one when somebody asks for the task. */
export class Pauses implements PauseWatch {
  readonly #scope: TaskScope
  readonly #timers = new Map<string, NodeJS.Timeout>()

  constructor (scope: TaskScope) {
    this.#scope = scope
  }

  watch (run: Run): void {
    const { confirmTtlMs } = this.#scope.options
    const { id } = run.record.key
    if (confirmTtlMs === 0) return
    this.forget(id)
    this.#timers.set(id, setTimeout(() => {
      this.#timers.delete(id)
      this.expire(run)
    }, confirmTtlMs + SLACK_MS).unref())
  }

  forget (id: string): void {
    clearTimeout(this.#timers.get(id))
    this.#timers.delete(id)
  }

  close (): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  async expire (run: Run): Promise<void> {
    const { log } = this.#scope
    try {
      await this.#expire(run)
    } catch (error) {
      log.warn({ err: error, taskId: run.record.clientId }, 'a pause could not be ended; it is looked at again when somebody asks')
    }
  }

  async #expire ({ record: { key, clientId } }: Run): Promise<void> {
    const { host, options, log } = this.#scope
    const run = await host.engine.find(key.owner, key.protocol, clientId)
    if (run === undefined || run.record.key.id !== key.id) return
    const open = await openInterrupts(host.store.interrupts, run.record)
    if (!open.some(({ state }) => state === 'expired')) return
    log.info({ taskId: clientId }, 'a pause of a task has lasted too long')
    if (options.onConfirmExpiry === 'cancel') return await host.engine.stop(run)
    const result = await resumeWith(this.#scope, run, ownerAsCaller(key.owner), denyAll(open.map(({ pending }) => pending)))
    // Nobody is there to go on with it.
    if (result.kind === 'no-agent') await host.engine.stop(run)
  }
}
