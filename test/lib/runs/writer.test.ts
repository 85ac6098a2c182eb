import t, { type Test } from 'tap'
import { MAX_AHEAD_BYTES, MAX_AHEAD_MS, Writer, type WriterOptions } from '../../../lib/runs/writer.ts'
import { EventBus, type Topic } from '../../../lib/bus/index.ts'
import { type AppendResult, type EventLog, type LogEvents } from '../../../lib/stores/index.ts'
import { turn } from '../../helpers/run-engine.ts'

interface Append { readonly firstSeq: number, readonly seqs: number[], resolve (result: AppendResult): void, reject (error: unknown): void }

interface Setup {
  readonly writer: Writer
  readonly topic: Topic
  /** Has events come, as many as there are payloads. */
  push (now: number, ...payloads: readonly string[]): void
  readonly appends: Append[]
  readonly seen: unknown[]
  next (): Promise<Append>
}

function setUp (t: Test, overrides: Partial<WriterOptions> = {}): Setup {
  const appends: Append[] = []
  const coming: ((append: Append) => void)[] = []
  const seen: unknown[] = []
  const log = {
    append: (_key: unknown, _fence: number, firstSeq: number, events: LogEvents) => new Promise<AppendResult>((resolve, reject) => {
      const append = { firstSeq, seqs: Array.from(events, ({ seq }) => seq), resolve, reject }
      appends.push(append)
      coming.shift()?.(append)
    })
  } as unknown as EventLog
  const topic = new EventBus().topic('run', { watermark: 'manual', replay: { maxEvents: 100 } })
  const writer = new Writer({
    log,
    key: { owner: {}, protocol: 'p', id: 'i' },
    fence: 1,
    patienceMs: 10_000,
    limits: () => ({}),
    last: () => topic.last,
    blockAfter: (seq) => topic.blockAfter(seq),
    onStored: (seq) => { seen.push(seq) },
    onLost: () => { seen.push('lost') },
    onUnavailable: () => { seen.push('unavailable') },
    ...overrides
  })
  const alive = setInterval(() => {}, 60_000)
  t.teardown(() => {
    clearInterval(alive)
    writer.close()
  })
  const next = (): Promise<Append> => new Promise((resolve) => { coming.push(resolve) })
  const push = (now: number, ...payloads: readonly string[]): void => {
    for (const data of payloads) {
      topic.append({ data })
      writer.note(data.length, now)
    }
  }
  return { writer, topic, push, appends, seen, next }
}

t.test('a burst is one entry, and what comes while it is in flight is the next one', async (t) => {
  const { writer, push, appends, seen } = setUp(t)
  push(0, 'x')
  push(0, 'x')
  t.same(appends, [])
  await turn()
  push(0, 'x')
  push(0, 'x')
  await turn()
  t.same(appends.map(({ seqs }) => seqs), [[1, 2]])
  appends[0]?.resolve({ kind: 'ok', last: 2 })
  await turn()
  t.same(appends.map(({ firstSeq, seqs }) => [firstSeq, seqs]), [[1, [1, 2]], [3, [3, 4]]])
  t.same(seen, [2])
  appends[1]?.resolve({ kind: 'ok', last: 4 })
  t.equal(await writer.flush(), true)
  t.same(seen, [2, 4])
})

t.test('an entry holds at most 32 KB, and at least one event', async (t) => {
  const { push, appends } = setUp(t)
  for (let i = 0; i < 5; i++) push(0, 'x'.repeat(15_000))
  push(0, 'x'.repeat(50_000))
  await turn()
  for (let i = 0; i < 4; i++) {
    appends.at(-1)?.resolve({ kind: 'ok', last: 0 })
    await turn()
  }
  t.same(appends.map(({ seqs }) => seqs), [[1, 2], [3, 4], [5], [6]])
})

t.test('the agent waits when the store is too many bytes behind', async (t) => {
  const { writer, push, appends } = setUp(t)
  t.equal(writer.ready(0), undefined)
  push(0, 'x'.repeat(MAX_AHEAD_BYTES))
  t.equal(writer.ready(0), undefined)
  push(0, 'x')
  const wait = writer.ready(0)
  t.ok(wait)
  t.equal(writer.ready(0), wait)
  await turn()
  appends[0]?.resolve({ kind: 'ok', last: 1 })
  await wait
  t.equal(writer.ready(0), undefined)
})

t.test('the agent waits when the store is too long behind', async (t) => {
  const { writer, push, appends } = setUp(t)
  const start = Math.floor(performance.now())
  push(start, 'x')
  t.equal(writer.ready(start + MAX_AHEAD_MS), undefined)
  t.ok(writer.ready(start + MAX_AHEAD_MS + 1), 'also before it is sent')
  await turn()
  push(start, 'x')
  const wait = writer.ready(start + MAX_AHEAD_MS + 1)
  appends[0]?.resolve({ kind: 'ok', last: 1 })
  await wait
})

t.test('a failed append is sent again as it was', async (t) => {
  const { push, appends, seen, next } = setUp(t)
  push(performance.now(), 'x')
  await turn()
  push(performance.now(), 'x')
  const second = next()
  appends[0]?.reject(new Error('away'))
  const third = next()
  const fourth = next()
  ;(await second).reject(new Error('away'))
  ;(await third).resolve({ kind: 'ok', last: 1 })
  await fourth
  t.same(appends.map(({ seqs }) => seqs), [[1], [1], [1], [2]])
  t.same(seen, [1])
})

t.test('gives up when the store is away for too long, and lets everybody go', async (t) => {
  const { writer, push, appends, seen } = setUp(t, { patienceMs: 0 })
  push(performance.now() - 10, 'x'.repeat(MAX_AHEAD_BYTES + 1))
  const wait = writer.ready(performance.now())
  const flushed = writer.flush()
  t.equal(writer.flush(), flushed)
  await turn()
  appends[0]?.reject(new Error('away'))
  await wait
  t.equal(await flushed, false)
  t.same(seen, ['unavailable'])
  push(0, 'x')
  await turn()
  t.equal(appends.length, 1)
  t.equal(await writer.flush(), false)
  t.equal(writer.ready(Infinity), undefined)
})

t.test('another owner, or no run any more, is a loss', async (t) => {
  for (const result of [{ kind: 'fenced', fence: 2 }, { kind: 'gone' }] as const) {
    const { writer, push, appends, seen } = setUp(t)
    push(0, 'x')
    await turn()
    appends[0]?.resolve(result)
    await turn()
    t.same(seen, ['lost'])
    t.equal(await writer.flush(), false)
  }
})

t.test('what a backend lost is sent again from memory', async (t) => {
  const { writer, push, appends, seen } = setUp(t)
  push(0, 'a', 'b', 'c')
  await turn()
  appends[0]?.resolve({ kind: 'ok', last: 3 })
  await turn()
  push(0, 'd')
  await turn()
  appends[1]?.resolve({ kind: 'misplaced', last: 1 })
  await turn()
  t.same(appends.map(({ seqs }) => seqs), [[1, 2, 3], [4], [2, 3]])
  appends[2]?.resolve({ kind: 'ok', last: 3 })
  await turn()
  t.same(appends.map(({ seqs }) => seqs).slice(3), [[4]])
  appends[3]?.resolve({ kind: 'ok', last: 4 })
  t.equal(await writer.flush(), true)
  t.same(seen, [3, 3, 4])
})

t.test('what a backend lost and memory has lost too can not be promised', async (t) => {
  const { push, topic, appends, seen } = setUp(t)
  push(0, ...Array.from({ length: 150 }, () => 'x'))
  await turn()
  topic.markStored(150)
  t.equal(topic.oldest, 51, 'trimmed')
  appends[0]?.resolve({ kind: 'misplaced', last: 49 })
  await turn()
  t.same(seen, ['unavailable'])
})

t.test('a backend that has it all already can not be told what it lost', async (t) => {
  const { push, appends, seen } = setUp(t)
  push(0, 'x')
  await turn()
  appends[0]?.resolve({ kind: 'misplaced', last: 1 })
  await turn()
  t.same(seen, ['unavailable'])
})

t.test('answers that come after the end are dropped', async (t) => {
  for (const how of ['resolve', 'reject'] as const) {
    const { writer, push, appends, seen } = setUp(t)
    push(0, 'x')
    await turn()
    writer.close()
    writer.close()
    if (how === 'resolve') appends[0]?.resolve({ kind: 'ok', last: 1 })
    else appends[0]?.reject(new Error('late'))
    await turn()
    t.same(seen, [])
  }
})

t.test('a writer that is closed before its first entry sends none', async (t) => {
  const { writer, push, appends } = setUp(t)
  push(0, 'x')
  writer.close()
  await turn()
  t.same(appends, [])
})

t.test('what was taken out of memory before it was stored can not be promised', async (t) => {
  const { writer, push, seen } = setUp(t, { blockAfter: () => undefined })
  push(0, 'x')
  t.equal(await writer.flush(), false)
  t.same(seen, ['unavailable'])
})
