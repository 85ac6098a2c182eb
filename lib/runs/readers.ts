import { Connections, type Connection } from './disconnect.ts'
import { type Followed, type Follower, type Following } from './following.ts'
import { type Run } from './run.ts'

/**
 * Who reads a run here. While another node executes it, or may be the next to do so, it is followed as long as somebody reads it; when it goes
 * on as another object of this node, its readers count there.
 */
export class Readers extends Connections {
  readonly #follower: Follower
  #mayFollow: boolean
  #successor: Run | undefined
  #succession: Connection | undefined

  /** @param isElsewhere whether another node may write the run's log from the beginning. */
  constructor (run: Followed, following: Following, isElsewhere: boolean, onAbandoned: () => void) {
    super('continue', { onAbandoned, onPresence: () => { this.#update() } })
    this.#follower = following.of(run)
    this.#mayFollow = isElsewhere
  }

  /** What the run goes on as on this node; undefined while it does not. */
  get successor (): Run | undefined {
    return this.#successor
  }

  /** Whether another node may write the run's log from now on. */
  elsewhere (isElsewhere: boolean): void {
    this.#mayFollow = isElsewhere
    this.#update()
  }

  /** The run goes on as `run`. */
  forward (run: Run): void {
    this.#succession?.close()
    this.#succession = undefined
    this.#successor = run
    this.#update()
  }

  #update (): void {
    const isRead = this.local > 0
    if (this.#successor === undefined && this.#mayFollow && isRead) this.#follower.start()
    else this.#follower.stop()
    if (isRead) this.#succession ??= this.#successor?.connect()
    else {
      this.#succession?.close()
      this.#succession = undefined
    }
  }
}
