/**
 * Hands out the ids of one run's messages or calls. Ids are unique within the thread: a client that finds a known id appends to
 * what it has, a reasoning message then swallows the text, and results show twice (section 6).
 */
export class IdPool {
  readonly #earlier: ReadonlySet<string>
  readonly #taken: Set<string>
  readonly #runId: string

  /** @param earlier ids that the thread has used already */
  constructor (runId: string, earlier: Iterable<string>) {
    this.#earlier = new Set(earlier)
    this.#taken = new Set(this.#earlier)
    this.#runId = runId
  }

  /** Takes an id: the wanted one, or one made from it where an agent repeats itself. */
  take (wanted: string): string {
    const base = wanted === '' ? this.#runId : this.#earlier.has(wanted) ? `${wanted}:${this.#runId}` : wanted
    let id = base
    for (let count = 2; this.#taken.has(id); count++) id = `${base}:${count}`
    this.#taken.add(id)
    return id
  }

  /** Whether an id has been used. */
  has (id: string): boolean {
    return this.#taken.has(id)
  }
}
