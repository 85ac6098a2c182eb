import t, { type Test } from 'tap'
import { MAX_AHEAD_BYTES, MAX_AHEAD_MS, Writer, type WriterOptions } from '../../../lib/runs/writer.ts'
import { type AppendResult, type EventLog, type LogEvent } from '../../../lib/stores/index.ts'
import { turn } from '../../helpers/run-engine.ts'

interface Append { readonly firstSeq: number, readonly seqs: number[], resolve (result: AppendResult): void, reject (error: unknown): void }

interface Setup { readonly writer: Writer, readonly appends: Append[], readonly seen: unknown[], next (): Promise<Append> }

function setUp (t: Test, overrides: Partial<WriterOptions> = {}): Setup {
  const appends: Append[] = []
  const coming: ((append: Append) => void)[] = []
  const seen: unknown[] = []
  const log = {
    append: (_key: unknown, _fence: number, firstSeq: number, events: readonly LogEvent[]) => new Promise<AppendResult>((resolve, reject) => {
      const append = { firstSeq, seqs: events.map(({ seq }) => seq), resolve, reject }
      appends.push(append)
      coming.shift()?.(append)
    })
  } as unknown as EventLog
  const writer = new Writer({
    log,
    key: { owner: {}, protocol: 'p', id: 'i' },
    fence: 1,
    patienceMs: 10_000,
    limits: () => ({}),
    history: () => [],
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
  return { writer, appends, seen, next }
}

const event = (seq: number, data = 'x'): LogEvent => ({ seq, data })

t.test('a burst is one entry, and what comes while it is in flight is the next one', async (t) => {
  const { writer, appends, seen } = setUp(t)
  writer.push(event(1), 0)
  writer.push(event(2), 0)
  t.same(appends, [])
  await turn()
  writer.push(event(3), 0)
  writer.push(event(4), 0)
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
  const { writer, appends } = setUp(t)
  for (let seq = 1; seq <= 5; seq++) writer.push(event(seq, 'x'.repeat(15_000)), 0)
  writer.push(event(6, 'x'.repeat(50_000)), 0)
  await turn()
  for (let i = 0; i < 4; i++) {
    appends.at(-1)?.resolve({ kind: 'ok', last: 0 })
    await turn()
  }
  t.same(appends.map(({ seqs }) => seqs), [[1, 2], [3, 4], [5], [6]])
})

t.test('the agent waits when the store is too many bytes behind', async (t) => {
  const { writer, appends } = setUp(t)
  t.equal(writer.ready(0), undefined)
  writer.push(event(1, 'x'.repeat(MAX_AHEAD_BYTES)), 0)
  t.equal(writer.ready(0), undefined)
  writer.push(event(2), 0)
  const wait = writer.ready(0)
  t.ok(wait)
  t.equal(writer.ready(0), wait)
  await turn()
  appends[0]?.resolve({ kind: 'ok', last: 1 })
  await wait
  t.equal(writer.ready(0), undefined)
})

t.test('the agent waits when the store is too long behind', async (t) => {
  const { writer, appends } = setUp(t)
  const start = Math.floor(performance.now())
  writer.push(event(1), start)
  t.equal(writer.ready(start + MAX_AHEAD_MS), undefined)
  t.ok(writer.ready(start + MAX_AHEAD_MS + 1), 'also before it is sent')
  await turn()
  writer.push(event(2), start)
  const wait = writer.ready(start + MAX_AHEAD_MS + 1)
  appends[0]?.resolve({ kind: 'ok', last: 1 })
  await wait
})

t.test('a failed append is sent again as it was', async (t) => {
  const { writer, appends, seen, next } = setUp(t)
  writer.push(event(1), performance.now())
  await turn()
  writer.push(event(2), performance.now())
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
  const { writer, appends, seen } = setUp(t, { patienceMs: 0 })
  writer.push(event(1, 'x'.repeat(MAX_AHEAD_BYTES + 1)), performance.now() - 10)
  const wait = writer.ready(performance.now())
  const flushed = writer.flush()
  t.equal(writer.flush(), flushed)
  await turn()
  appends[0]?.reject(new Error('away'))
  await wait
  t.equal(await flushed, false)
  t.same(seen, ['unavailable'])
  writer.push(event(2), 0)
  await turn()
  t.equal(appends.length, 1)
  t.equal(await writer.flush(), false)
  t.equal(writer.ready(Infinity), undefined)
})

t.test('another owner, or no run any more, is a loss', async (t) => {
  for (const result of [{ kind: 'fenced', fence: 2 }, { kind: 'gone' }] as const) {
    const { writer, appends, seen } = setUp(t)
    writer.push(event(1), 0)
    await turn()
    appends[0]?.resolve(result)
    await turn()
    t.same(seen, ['lost'])
    t.equal(await writer.flush(), false)
  }
})

t.test('what a backend lost is sent again from memory', async (t) => {
  const { writer, appends, seen } = setUp(t, { history: (after) => [1, 2, 3, 4].filter((seq) => seq > after).map((seq) => event(seq)) })
  writer.push(event(4), 0)
  await turn()
  appends[0]?.resolve({ kind: 'misplaced', last: 1 })
  await turn()
  t.same(appends.map(({ seqs }) => seqs), [[4], [2, 3, 4]])
  appends[1]?.resolve({ kind: 'ok', last: 4 })
  t.equal(await writer.flush(), true)
  t.same(seen, [4])
})

t.test('what a backend lost and memory has lost too can not be promised', async (t) => {
  for (const history of [[], [event(3)]]) {
    const { writer, appends, seen } = setUp(t, { history: () => history })
    writer.push(event(4), 0)
    await turn()
    appends[0]?.resolve({ kind: 'misplaced', last: 1 })
    await turn()
    t.same(seen, ['unavailable'])
  }
})

t.test('answers that come after the end are dropped', async (t) => {
  for (const how of ['resolve', 'reject'] as const) {
    const { writer, appends, seen } = setUp(t)
    writer.push(event(1), 0)
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
  const { writer, appends } = setUp(t)
  writer.push(event(1), 0)
  writer.close()
  await turn()
  t.same(appends, [])
})
