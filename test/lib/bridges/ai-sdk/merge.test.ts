import t from 'tap'
import { merge } from '../../../../lib/bridges/ai-sdk/merge.ts'

async function drain<T, R> (stream: AsyncGenerator<T, R>): Promise<[values: T[], returned: R]> {
  const values: T[] = []
  for (;;) {
    const { done, value } = await stream.next()
    if (done === true) return [values, value]
    values.push(value)
  }
}

async function * count (name: string, to: number): AsyncGenerator<string, string, undefined> {
  for (let n = 1; n <= to; n++) yield `${name}${n}`
  return name
}

t.test('values come as they are made, results in the order of their sources', async (t) => {
  t.strictSame(await drain(merge([count('a', 2), count('b', 3), count('c', 0)])), [['a1', 'b1', 'a2', 'b2', 'b3'], ['a', 'b', 'c']])
  t.strictSame(await drain(merge([])), [[], []])
})

t.test('a slow one does not keep up a quick one', async (t) => {
  let release = (): void => {}
  async function * slow (): AsyncGenerator<string, string, undefined> {
    await new Promise<void>((resolve) => { release = resolve })
    yield 's1'
    return 's'
  }
  const stream = merge([slow(), count('q', 1_000)])
  for (let n = 1; n <= 1_000; n++) t.strictSame((await stream.next()).value, `q${n}`)
  const next = stream.next()
  release()
  t.strictSame((await next).value, 's1')
  t.strictSame(await drain(stream), [[], ['s', 'q']])
})

t.test('none is asked for more than was taken', async (t) => {
  let made = 0
  async function * eager (): AsyncGenerator<number, void, undefined> {
    for (;;) yield ++made
  }
  const stream = merge([eager()])
  await stream.next()
  await new Promise((resolve) => { setImmediate(resolve) })
  t.equal(made, 1)
  await stream.return([])
})

t.test('when one throws, the others are heard to their end before that is told', async (t) => {
  const failure = new Error('first')
  async function * failing (error: Error): AsyncGenerator<string, string, undefined> {
    yield 'f'
    throw error
  }
  const seen: string[] = []
  const stream = merge([failing(failure), failing(new Error('second')), count('a', 3)])
  await t.rejects((async () => { for await (const value of stream) seen.push(value) })(), failure)
  t.strictSame(seen, ['f', 'f', 'a1', 'a2', 'a3'])
})
