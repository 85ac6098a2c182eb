import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import t from 'tap'
import { Backoff, pause } from '../../../lib/net/index.ts'

t.test('waits twice as long each time, up to a limit, somewhere in its upper half', async (t) => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1_000, max: 20_000 }), fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 50 }), (baseMs, maxMs, draws) => {
    let draw = 0
    const backoff = new Backoff({ baseMs, maxMs, random: () => draws[draw++] ?? 0 })
    draws.forEach((_, index) => {
      const whole = Math.min(maxMs, baseMs * 2 ** index)
      const ms = backoff.next()
      t.ok(ms >= Math.floor(whole / 2) && ms <= Math.ceil(whole))
    })
    t.equal(backoff.count, draws.length)
    backoff.reset()
    t.ok(backoff.next() <= baseMs)
  }), { numRuns: 50 })
})

t.test('waits as long as it is asked to, but never beyond its limit', async (t) => {
  const backoff = new Backoff({ baseMs: 10, maxMs: 1_000, random: () => 1 })
  t.strictSame([backoff.next(300), backoff.next(60_000), backoff.next()], [300, 1_000, 40])
  t.ok(new Backoff({ baseMs: 100, maxMs: 100 }).next() >= 50, 'the draw is random by default')
})

t.test('a pause ends by itself or with the signal, and leaves no listener', async (t) => {
  const alive = setInterval(() => {}, 1_000) // a pause keeps no process alive
  t.teardown(() => { clearInterval(alive) })
  const { signal } = new AbortController()
  await pause(1, signal)
  await pause(1)
  t.equal(getEventListeners(signal, 'abort').length, 0)
  const controller = new AbortController()
  const reason = new Error('enough')
  const waiting = pause(1_000_000, controller.signal)
  controller.abort(reason)
  t.equal(await waiting.catch((error: unknown) => error), reason)
  t.equal(await pause(1, controller.signal).catch((error: unknown) => error), reason)
  t.equal(getEventListeners(controller.signal, 'abort').length, 0)
})
