import { type Socket } from 'node:net'
import t from 'tap'
import { connect } from '../../helpers/sse-client.ts'
import { buildApp, turn } from './app.ts'

const STALLED = 100
const EVENTS = 40_000
const TEXT = 'x'.repeat(100)

t.test('a hundred stalled readers take nothing from a healthy one, hold no queue, and are told of their gap', async (t) => {
  const { app, port } = await buildApp(t, { replay: { maxEvents: 256 } })
  const sockets: Socket[] = []
  app.server.on('connection', (socket) => { sockets.push(socket) })
  const stalled = []
  for (let n = 0; n < STALLED; n++) stalled.push(await connect('GET', '/events/a?from=start', { port }))
  await using healthy = await connect('GET', '/events/a?from=start', { port })
  const { epoch } = app.bus.topic('a')

  let queued = 0
  for (let n = 1; n <= EVENTS; n++) {
    app.bus.publish('a', { data: { n, text: TEXT } })
    if (n % 64 !== 0) continue
    const [frame] = (await healthy.take(64)).slice(-1)
    if (frame?.data !== JSON.stringify({ n, text: TEXT })) t.fail(`the healthy reader has ${frame?.raw} for ${n}`)
    queued = Math.max(queued, ...sockets.map((socket) => socket.writableLength))
  }
  t.ok(queued < 128 * 1024, `at most ${queued} bytes wait for any one of them`)
  t.ok(app.bus.bytes < 1024 * 1024, `${app.bus.bytes} bytes kept for all of them`)
  t.equal(healthy.received, Array.from({ length: EVENTS }, (_, n) => `id: ${epoch}.${n + 1}\ndata: {"n":${n + 1},"text":"${TEXT}"}\n\n`).join(''))

  app.bus.topic('a').end()
  await turn()
  const whole = healthy.received
  while (stalled.length > 0) {
    const text = await stalled.pop()?.text() ?? ''
    const [gap = '', seq = '', oldest = ''] = /id: \S+\.(\d+)\nevent: gap\ndata: {"oldest":(\d+)}\n\n/.exec(text) ?? []
    t.equal(Number(seq), Number(oldest) - 1, 'a gap is told, with a cursor')
    const before = text.slice(0, text.indexOf(gap))
    t.ok(before !== '' && whole.startsWith(before), 'everything up to the gap')
    t.ok(text.slice(before.length + gap.length) === whole.slice(whole.indexOf(`id: ${epoch}.${oldest}\n`)), 'and everything after it')
  }
})
