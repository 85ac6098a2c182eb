/** Something a source did. */
type Arrival<T, R> =
  | { readonly source: number, readonly result: IteratorResult<T, R> }
  | { readonly source: number, readonly error: unknown }

/**
 * Runs generators side by side and yields what they yield in the order in which it comes; each is asked for its next value
 * only after its last one was taken. Returns what they returned, in their own order. When one throws, the others are
 * still heard to their end before that is thrown on; when the reader leaves, all are returned.
 */
export async function * merge<T, R> (sources: readonly AsyncGenerator<T, R, undefined>[]): AsyncGenerator<T, R[], undefined> {
  const returned: R[] = []
  const arrivals: Arrival<T, R>[] = []
  const running = new Set(sources.keys())
  let failure: { readonly error: unknown } | undefined
  let wake = (): void => {}
  const arrive = (arrival: Arrival<T, R>): void => {
    arrivals.push(arrival)
    wake()
  }
  // A queue and not Promise.race(), which would leave a reaction on each slow source for every value of a quick one.
  const ask = (source: number, generator: AsyncGenerator<T, R, undefined>): void => {
    generator.next().then((result) => { arrive({ source, result }) }, (error: unknown) => { arrive({ source, error }) })
  }
  sources.forEach((generator, source) => { ask(source, generator) })
  try {
    while (running.size > 0) {
      const arrival = arrivals.shift()
      if (arrival === undefined) {
        await new Promise<void>((resolve) => { wake = resolve })
        continue
      }
      const { source } = arrival
      if ('error' in arrival) {
        running.delete(source)
        failure ??= { error: arrival.error }
      } else if (arrival.result.done === true) {
        running.delete(source)
        returned[source] = arrival.result.value
      } else {
        yield arrival.result.value
        const generator = sources[source]
        if (generator !== undefined) ask(source, generator)
      }
    }
  } finally {
    await Promise.all([...running].map((source) => sources[source]?.return(undefined as never)))
  }
  if (failure !== undefined) throw failure.error
  return returned
}
