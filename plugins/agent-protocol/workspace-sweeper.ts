import { submissionOf, taskProtocol } from './protocol.ts'
import { type TaskScope } from './scope.ts'
import { type WorkspaceTask } from './workspace.ts'

/** Milliseconds between two sweeps. */
const SWEEP_MS = 600_000

/** Removes the files of tasks whose time in the store is over: a store says nothing when it forgets. */
export class WorkspaceSweeper {
  readonly #scope: Pick<TaskScope, 'host' | 'workspaces' | 'options' | 'log'>
  readonly #timer: NodeJS.Timeout
  #sweeping: Promise<void> | undefined

  constructor (scope: Pick<TaskScope, 'host' | 'workspaces' | 'options' | 'log'>) {
    this.#scope = scope
    this.#timer = setInterval(() => { this.sweep() }, SWEEP_MS).unref()
  }

  /** One sweep; a call during another is that one. Never rejects. */
  sweep (): Promise<void> {
    this.#sweeping ??= this.#sweep().finally(() => { this.#sweeping = undefined })
    return this.#sweeping
  }

  close (): void {
    clearInterval(this.#timer)
  }

  async #sweep (): Promise<void> {
    const { workspaces, options, log } = this.#scope
    try {
      // A younger one may be of a task that is only being submitted.
      await workspaces.sweep(options.taskTtlMs, (task) => this.#isGone(task))
    } catch (error) {
      log.warn({ err: error }, 'files of tasks that are gone could not be removed; they are looked at again')
    }
  }

  async #isGone ({ id, owner, taskId }: WorkspaceTask): Promise<boolean> {
    const record = await this.#scope.host.store.index.find(owner, taskProtocol.name, taskId)
    // Another task may have the id by now.
    return record === undefined || submissionOf(record).workspaceId !== id
  }
}
