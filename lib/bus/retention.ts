/** What {@link Retention} has to know of a topic. */
export interface Retained {
  readonly readers: number
  readonly isEnded: boolean
  readonly isOwned: boolean
}

/** The topics that may go when a limit is reached, in the order in which they go; those with readers are never among them. */
export class Retention<T extends Retained> {
  /** Ended, the longest ended first. */
  #ended = new Set<T>()
  /** Of lifetime `use`, not ended, the longest silent first. */
  #idle = new Set<T>()

  /** Puts a topic where it belongs now: at the end of its row. */
  touch (topic: T): void {
    if (topic.readers > 0) this.delete(topic)
    else if (topic.isEnded) {
      this.#idle.delete(topic)
      this.#ended.add(topic)
    } else if (!topic.isOwned) {
      this.#idle.delete(topic)
      this.#idle.add(topic)
    }
  }

  delete (topic: T): void {
    this.#ended.delete(topic)
    this.#idle.delete(topic)
  }

  /** The topic that goes first. */
  next (): T | undefined {
    return this.#ended.values().next().value ?? this.#idle.values().next().value
  }
}
