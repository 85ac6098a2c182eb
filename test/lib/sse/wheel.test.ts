import { mock } from 'node:test'
import t from 'tap'
import { Wheel, WheelEntry } from '../../../lib/sse/wheel.ts'

function clock (t: { teardown (fn: () => void): void }): void {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => { mock.timers.reset() })
}

t.test('visits an entry on its tick, near and beyond one turn of the wheel', async (t) => {
  clock(t)
  const wheel = new Wheel(10)
  for (const ticks of [1, 2, 63, 64, 65, 128, 200]) {
    const from = wheel.now
    const visits: number[] = []
    wheel.schedule(new WheelEntry((now) => {
      visits.push(now - from)
      return 0
    }), ticks)
    mock.timers.tick(10 * 300)
    t.same(visits, [ticks])
  }
  t.equal(wheel.size, 0)
})

t.test('an entry is visited again after the ticks its visit gave', async (t) => {
  clock(t)
  const wheel = new Wheel(10)
  const visits: number[] = []
  wheel.schedule(new WheelEntry((now) => {
    visits.push(now)
    return visits.length < 3 ? 70 : 0
  }), 5)
  mock.timers.tick(10 * 1000)
  t.same(visits, [5, 75, 145])
})

t.test('scheduling again moves an entry, removing forgets it', async (t) => {
  clock(t)
  const wheel = new Wheel(10)
  const visits: string[] = []
  const moved = new WheelEntry((now) => { visits.push(`moved ${now}`); return 0 })
  const removed = new WheelEntry((now) => { visits.push(`removed ${now}`); return 0 })
  wheel.schedule(moved, 9)
  wheel.schedule(removed, 3)
  wheel.schedule(moved, 2)
  wheel.remove(removed)
  wheel.remove(removed)
  t.equal(wheel.size, 1)
  mock.timers.tick(10 * 200)
  t.same(visits, ['moved 2'])
})

t.test('a visit that removes another entry of the same tick keeps it from being visited', async (t) => {
  clock(t)
  const wheel = new Wheel(10)
  const visits: string[] = []
  const second = new WheelEntry(() => { visits.push('second'); return 0 })
  wheel.schedule(new WheelEntry(() => { visits.push('first'); wheel.remove(second); return 0 }), 1)
  wheel.schedule(second, 1)
  mock.timers.tick(10 * 200)
  t.same(visits, ['first'])
  t.equal(wheel.size, 0)
})

t.test('one timer, only while there are entries', async (t) => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  const wheel = new Wheel(1000)
  const entries = Array.from({ length: 100 }, () => new WheelEntry(() => 0))
  for (const entry of entries) wheel.schedule(entry, 3)
  for (const entry of entries) wheel.remove(entry)
  t.equal(timers(), before)
  t.equal(wheel.size, 0)
})

t.test('a duration is at least one tick, rounded up', async (t) => {
  t.same([0, 1, 10, 11, 1000].map((ms) => new Wheel(10).ticks(ms)), [1, 1, 1, 2, 100])
})
