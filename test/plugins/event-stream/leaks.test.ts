import t from 'tap'
import { runScript } from '../../helpers/child.ts'
import { type Leftovers } from '../../helpers/leaks.ts'

// A machine that is busy with other files takes its time.
t.setTimeout(240_000)

t.test('five thousand connects and resets leave no listener, timer, handle or heap behind', async (t) => {
  const figures = await runScript(new URL('load/resets.ts', import.meta.url)) as Leftovers
  t.comment(JSON.stringify(figures))
  t.match(figures, { resets: 5_000, readers: 0, topics: 1, connections: 0 })
  t.strictSame(figures.handles[1], figures.handles[0])
  t.equal(figures.listeners[1], figures.listeners[0])
  t.strictSame(figures.left, [], 'nothing is there more often than before')
  t.ok(figures.heapGrowth < 2 * 1024 * 1024, `the heap has grown by ${figures.heapGrowth} bytes`)
})
