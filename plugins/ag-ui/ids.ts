/**
 * Hands out the ids of one run's messages or calls. Ids are unique within the thread: a client that finds a known id appends to
 * what it has, a reasoning message then swallows the text, and results show twice (section 6).
 */
export class IdPool {
  readonly #taken: Set<string>
  readonly #runId: string

  /** @param taken ids that the thread has used already */
  constructor (runId: string, taken: Iterable<string>) {
    this.#taken = new Set(taken)
    this.#runId = runId
  }

  /** Takes an id: the wanted one, or one made from it where an agent repeats itself. */
  take (wanted: string): string {
    let id = wanted === '' ? this.#runId : wanted
    if (this.#taken.has(id)) id = `${id}:${this.#runId}`
    const base = id
    for (let count = 2; this.#taken.has(id); count++) id = `${base}:${count}`
    this.#taken.add(id)
    return id
  }

  /** Whether an id has been used. */
  has (id: string): boolean {
    return this.#taken.has(id)
  }
}
