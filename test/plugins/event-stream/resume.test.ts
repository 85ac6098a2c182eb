import t from 'tap'
import { connect } from '../../helpers/sse-client.ts'
import { buildApp, turn } from './app.ts'

const DISCONNECTS = 1000

/** Numbers that are the same in every run (mulberry32). */
function random (seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6D2B79F5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const PIECES = ['a', '\n', '\r\n', '\r', 'id: 1', ': x', '\u2028', '\u00fc', '\ud83d\ude00', ' ', '\0']

t.test('a client that is cut off a thousand times and comes back with its last id has the bytes of one that never was', async (t) => {
  const below = random(20260101)
  const { app, port } = await buildApp(t, { replay: { maxEvents: 100_000, maxBytes: 64 * 1024 * 1024 } })
  const { epoch } = app.bus.topic('a', { lifetime: 'use' })
  await using whole = await connect('GET', '/events/a?from=start', { port })
  const uninterrupted = whole.text()

  const publish = (count: number): void => {
    for (let n = 0; n < count; n++) {
      const text = Array.from({ length: below(8) }, () => PIECES[below(PIECES.length)]).join('').repeat(below(20) === 0 ? 500 : 1)
      app.bus.publish('a', below(2) === 0 ? { data: text } : { event: `e${below(3)}`, data: { n, text } })
    }
  }
  publish(1)
  let received = ''
  let cursor = `${epoch}.0`
  for (let cuts = 0; cuts < DISCONNECTS; cuts++) {
    publish(below(4))
    const client = await connect('GET', '/events/a', { port, headers: { 'last-event-id': cursor } })
    publish(below(3)) // while it is replayed to
    const last = Number(cursor.split('.')[1])
    const frames = await client.take(Math.min(below(8), app.bus.topic('a').last - last))
    if (below(2) === 0) await client.destroy()
    else await client.reset()
    for (const frame of frames) {
      received += frame.raw
      cursor = frame.id ?? cursor
    }
    if (below(3) === 0) await turn()
  }
  app.bus.topic('a').end()
  const client = await connect('GET', '/events/a', { port, headers: { 'last-event-id': cursor } })
  received += await client.text()
  t.equal(received, await uninterrupted)
  t.ok(app.bus.find('a')?.readers === 0)
})
