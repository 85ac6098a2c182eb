import { getEventListeners } from 'node:events'
import { mock } from 'node:test'
import t from 'tap'
import { Pump, type PumpEnd, type PumpOptions } from '../../../lib/runs/pump.ts'
import { turn } from '../../helpers/run-engine.ts'

// The pump's timers are unref'ed: something else has to keep the process alive.
const alive = setInterval(() => {}, 60_000)
t.teardown(() => { clearInterval(alive) })

interface Setup {
  readonly values: string[]
  readonly controller: AbortController
  run (open: () => AsyncIterable<string>): Promise<PumpEnd>
}

function setUp (overrides: Partial<PumpOptions<string>> = {}): Setup {
  const values: string[] = []
  const controller = new AbortController()
  const pump = new Pump<string>({
    signal: controller.signal,
    graceMs: () => 1_000,
    guard: () => undefined,
    onValue: (value) => { values.push(value) },
    blocked: () => undefined,
    ...overrides
  })
  return { values, controller, run: (open) => pump.run(open) }
}

function iterable (iterator: Partial<AsyncIterator<string>>): AsyncIterable<string> {
  return { [Symbol.asyncIterator]: () => iterator as AsyncIterator<string> }
}

t.test('takes every value and ends with the iterator', async (t) => {
  const { values, run } = setUp()
  t.same(await run(async function * () { yield 'a'; yield 'b' }), { kind: 'returned' })
  t.same(values, ['a', 'b'])
})

t.test('ends with what the iterator throws, whatever it is', async (t) => {
  const ring: { cause?: unknown } = new Error('ring')
  ring.cause = ring
  for (const error of [new Error('no'), undefined, null, 'text', ring]) {
    const { values, run } = setUp()
    t.same(await run(async function * () { yield 'a'; throw error }), { kind: 'threw', error })
    t.same(values, ['a'])
  }
})

t.test('what is thrown in a finally counts as thrown', async (t) => {
  const error = new Error('finally')
  const { run } = setUp()
  // eslint-disable-next-line no-unsafe-finally
  t.same(await run(async function * () { try { yield 'a' } finally { throw error } }), { kind: 'threw', error })
})

t.test('opening, asking and yielding nothing that is an iterator are failures of the agent', async (t) => {
  const error = new Error('no')
  t.same(await setUp().run(() => { throw error }), { kind: 'threw', error })
  t.match(await setUp().run(() => ({}) as AsyncIterable<string>), { kind: 'threw', error: TypeError })
  t.same(await setUp().run(() => iterable({ next: () => { throw error } })), { kind: 'threw', error })
  t.match(await setUp().run(() => iterable({ next: async () => undefined as never })), { kind: 'threw', error: TypeError })
})

t.test('an iterator that answers without a promise is taken as well', async (t) => {
  const { values, run } = setUp()
  let count = 0
  const next = () => (count++ === 0 ? { done: false, value: 'a' } : { done: true, value: undefined }) as never
  t.same(await run(() => iterable({ next })), { kind: 'returned' })
  t.same(values, ['a'])
})

t.test('a signal that has fired before opens nothing', async (t) => {
  const { controller, run } = setUp()
  controller.abort()
  t.same(await run(() => { throw new Error('opened') }), { kind: 'aborted', isAbandoned: false })
})

t.test('an idle iterator is closed as soon as the signal fires', async (t) => {
  const { controller, run } = setUp()
  let returned = 0
  let settle: (result: IteratorResult<string>) => void = () => {}
  const ended = run(() => iterable({
    next: () => new Promise((resolve) => { settle = resolve }),
    return: async () => {
      returned++
      settle({ done: true, value: undefined })
      return { done: true, value: undefined }
    }
  }))
  controller.abort()
  t.equal(returned, 1, 'in the same tick')
  t.same(await ended, { kind: 'aborted', isAbandoned: false })
})

t.test('a generator runs its finally before the pump ends', async (t) => {
  const { controller, values, run } = setUp()
  const steps: string[] = []
  const ended = run(async function * () {
    try {
      yield 'a'
      await new Promise<void>((resolve) => { controller.signal.addEventListener('abort', () => { resolve() }) })
      yield 'last'
      yield 'never'
    } finally {
      await turn()
      steps.push('cleaned')
    }
  })
  await turn()
  controller.abort()
  t.same(await ended, { kind: 'aborted', isAbandoned: false })
  t.same(steps, ['cleaned'])
  t.same(values, ['a', 'last'], 'what was on its way is taken, nothing more is asked for')
})

t.test('an agent that rejects because of the abort was aborted', async (t) => {
  const { controller, run } = setUp()
  const ended = run(() => iterable({ next: () => new Promise((_resolve, reject) => { controller.signal.addEventListener('abort', () => { reject(new Error('stopped')) }) }) }))
  controller.abort()
  t.same(await ended, { kind: 'aborted', isAbandoned: false })
})

t.test('an agent that ends because of the abort was aborted', async (t) => {
  const { controller, run } = setUp()
  const ended = run(() => iterable({ next: () => new Promise((resolve) => { controller.signal.addEventListener('abort', () => { resolve({ done: true, value: undefined }) }) }) }))
  controller.abort()
  t.same(await ended, { kind: 'aborted', isAbandoned: false })
})

t.test('a return that throws or rejects changes nothing', async (t) => {
  for (const giveUp of [() => { throw new Error('sync') }, async () => { throw new Error('async') }]) {
    const { controller, run } = setUp()
    let settle: (result: IteratorResult<string>) => void = () => {}
    const ended = run(() => iterable({ next: () => new Promise((resolve) => { settle = resolve }), return: giveUp as never }))
    controller.abort()
    settle({ done: false, value: 'late' })
    t.same(await ended, { kind: 'aborted', isAbandoned: false })
  }
})

t.test('an iterator that does not settle is left behind, and its late end is caught', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  for (const late of ['value', 'error'] as const) {
    const { controller, values, run } = setUp()
    let resolve: (result: IteratorResult<string>) => void = () => {}
    let reject: (error: unknown) => void = () => {}
    const ended = run(() => iterable({
      next: () => new Promise((_resolve, _reject) => { resolve = _resolve; reject = _reject }),
      return: () => new Promise(() => {})
    }))
    controller.abort()
    mock.timers.tick(999)
    mock.timers.tick(1)
    t.same(await ended, { kind: 'aborted', isAbandoned: true })
    if (late === 'value') resolve({ done: false, value: 'late' })
    else reject(new Error('late'))
    await turn()
    t.same(values, [])
  }
})

t.test('waits when told so, and an abort does not wait with it', async (t) => {
  let go: () => void = () => {}
  const { controller, values, run } = setUp({ blocked: () => new Promise((resolve) => { go = resolve }) })
  let returned = 0
  let count = 0
  const ended = run(() => iterable({ next: async () => ({ done: false, value: String(count++) }), return: async () => { returned++; return { done: true, value: undefined } } }))
  await turn()
  t.same(values, ['0'])
  controller.abort()
  t.same(await ended, { kind: 'aborted', isAbandoned: false })
  t.equal(returned, 1)
  go()
  await turn()
  t.same(values, ['0'])
})

t.test('asks again after each wait', async (t) => {
  const waits = [Promise.resolve(), Promise.resolve(), undefined, undefined]
  const { values, run } = setUp({ blocked: () => waits.shift() })
  t.same(await run(async function * () { yield 'a'; yield 'b' }), { kind: 'returned' })
  t.same(values, ['a', 'b'])
  t.same(waits, [])
})

t.test('a value waits for its guard, and is dropped when the pump is over by then', async (t) => {
  const waits: (() => void)[] = []
  const { controller, values, run } = setUp({ guard: () => new Promise((resolve) => { waits.push(resolve) }), graceMs: () => 0 })
  const ended = run(async function * () { yield 'a'; yield 'b' })
  await turn()
  t.same(values, [])
  waits.shift()?.()
  await turn()
  t.same(values, ['a'])
  controller.abort()
  t.same(await ended, { kind: 'aborted', isAbandoned: true })
  waits.shift()?.()
  await turn()
  t.same(values, ['a'])
})

t.test('what the owner throws ends the pump and closes the iterator', async (t) => {
  const error = new Error('ours')
  const fail = (): never => { throw error }
  const reject = (): Promise<void> => Promise.reject(error)
  for (const overrides of [{ onValue: fail }, { guard: fail }, { guard: reject }, { blocked: fail }, { blocked: reject }]) {
    let returned = 0
    const { run } = setUp(overrides)
    const ended = run(() => iterable({ next: async () => ({ done: false, value: 'a' }), return: async () => { returned++; return { done: true, value: undefined } } }))
    t.same(await ended, { kind: 'threw', error })
    t.equal(returned, 1)
  }
})

t.test('an iterator without a return has nothing to close', async (t) => {
  const error = new Error('ours')
  const { run } = setUp({ onValue: () => { throw error } })
  t.same(await run(() => iterable({ next: async () => ({ done: false, value: 'a' }) })), { kind: 'threw', error })
})

t.test('leaves no listener on the signal', async (t) => {
  const { controller, run } = setUp()
  await run(async function * () { yield 'a' })
  t.same(getEventListeners(controller.signal, 'abort'), [])
})
