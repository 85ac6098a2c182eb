// A reader that is cut at random a thousand times and comes back with its last id, beside one that is never cut.
import { type AgentEventInit } from '../../../../../lib/agent/index.ts'
import { checkFrames } from '../../../../helpers/ag-ui-check.ts'
import { readUntil, serveApp } from '../../../../helpers/ag-ui-app.ts'
import { steered, type SteeredRun } from '../../../../helpers/steered-agent.ts'

const RUNS = 10
const CUTS = 100

let seed = Number(process.argv[2] ?? 1)
/** mulberry32: the same cuts for the same seed. */
function random (below: number): number {
  seed = (seed + 0x6D2B79F5) | 0
  let value = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
  return ((value ^ (value >>> 14)) >>> 0) % below
}

/** Something for the next frames: one of each kind, and now and then more than a socket's chunk. */
function speak (run: SteeredRun, step: number): void {
  const long = random(20) === 0 ? 'ö'.repeat(40_000) : ''
  const kinds: readonly AgentEventInit[][] = [
    [{ type: 'TEXT_BLOCK_DELTA', replyId: `r${step % 3}`, delta: `Ünïcode 😀 ${step}\n${long}` }],
    [{ type: 'THINKING_BLOCK_DELTA', replyId: `r${step % 3}`, delta: `hm ${step}` }],
    [{ type: 'CUSTOM', name: 'tick', value: { step } }],
    [
      { type: 'TOOL_CALL_START', replyId: `r${step % 3}`, toolCallId: `c${step}`, toolCallName: 'f' },
      { type: 'TOOL_CALL_DELTA', toolCallId: `c${step}`, delta: `{"step":${step}}` },
      { type: 'TOOL_CALL_END', toolCallId: `c${step}` },
      { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: `c${step}`, delta: long },
      { type: 'TOOL_RESULT_END', toolCallId: `c${step}`, state: 'success' }
    ]
  ]
  run.push(...kinds[random(kinds.length)] ?? [])
}

let cuts = 0
let equal = 0
let bytes = 0
for (const onDisconnect of ['continue', { graceMs: 60_000 }] as const) {
  const agent = steered()
  const server = await serveApp({ teardown () {} }, { agent, onDisconnect, enableReasoning: true, replay: { maxBytes: 64 * 1024 * 1024 } })
  for (let index = 0; index < RUNS / 2; index++) {
    const threadId = `thread-${index}`
    let reader = await server.run({ threadId })
    const run = await agent.next()
    const steady = await server.rejoin({ threadId })
    const whole = steady.rest()
    const read = await readUntil(reader, ({ type }) => type === 'RUN_STARTED')
    for (let cut = 0; cut < CUTS; cut++) {
      const said = random(4) + 1
      for (let step = 0; step < said; step++) speak(run, cut * 4 + step)
      // Each of them is a frame at least. Sometimes nothing is read, and what was in flight is lost with the connection.
      for (let count = random(said + 1); count > 0; count--) read.push(await reader.next())
      await reader[random(2) === 0 ? 'destroy' : 'reset']()
      cuts++
      reader = await server.rejoin({ threadId }, read.at(-1)?.id)
    }
    run.end()
    read.push(...await reader.rest())
    const expected = (await whole).map(({ raw }) => raw).join('')
    checkFrames(read)
    if (expected === read.map(({ raw }) => raw).join('')) equal++
    bytes += Buffer.byteLength(expected)
  }
  await server.app.close()
}
console.log(JSON.stringify({ cuts, runs: RUNS, equal, bytes }))
process.exit(0)
