import fc from 'fast-check'
import t from 'tap'
import { type Agent, textOf } from '../../../../lib/agent/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { chaosProxy } from '../../../helpers/chaos-proxy.ts'
import { fakeTasks } from '../../../helpers/fake-tasks.ts'
import { decide, lines, remote, run } from '../../../helpers/remote-run.ts'
import { serveTasks } from '../../../helpers/task-app.ts'

// A machine that is busy with other files takes its time.
t.setTimeout(300_000)

/** Talks for a while, calls nothing, and lets others have their turns between its words. */
const talker: Agent = {
  name: 'talker',
  async * stream (input) {
    const words = Number(textOf(input.messages.at(-1)?.content ?? []))
    for (let word = 0; word < words; word++) {
      if (word % 4 === 0) await new Promise(setImmediate)
      yield { type: 'TEXT_BLOCK_DELTA', replyId: `m${word >> 3}`, blockId: 'b', delta: `w${word} ` }
      if (word % 5 === 0) yield { type: 'TEXT_BLOCK_DELTA', source: 'helper', delta: `h${word} ` }
    }
  }
}

/** Nothing but the stalls costs time. */
const impatient = { idleMs: 150, silenceMs: 60, callTimeoutMs: 150 } as const

/** The service as its specification describes it, and as it is. */
const services = {
  fake: fakeTasks,
  real: async (test: { teardown (fn: () => unknown): unknown }, agent: Agent) => await serveTasks(test, { agent })
}

for (const kind of ['fake', 'real'] as const) {
  t.test(`whatever the network does, a run gives the events and the message of one that nothing happened to (D18, ${kind})`, async (t) => {
    const { port } = await services[kind](t, talker)
    const seen = new Set<string>()
    let count = 0
    await fc.assert(fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 31 }), fc.integer({ min: 1, max: 60 }), async (seed, words) => {
      const expected = await run(talker, String(words))
      const proxy = await chaosProxy(t, { port }, { seed })
      const { events, message, code } = await run(remote(proxy.url, impatient), String(words), { runId: `run-${count++}` })
      t.equal(code, undefined, `seed ${seed}`)
      t.strictSame(lines(events), lines(expected.events), `seed ${seed}`)
      t.equal(new Set(events.map(({ id }) => id)).size, events.length)
      t.strictSame(message.content, expected.message.content)
      for (const fault of proxy.faults) seen.add(fault)
    }), { numRuns: 25, seed: 7 })
    t.equal(seen.size, 7, 'everything has happened')
  })

  t.test(`an approved call runs once, whatever the network does to question and answer (${kind})`, async (t) => {
    let count = 0
    await fc.assert(fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 31 }), fc.boolean(), async (seed, approved) => {
      const tool = noted('remove')
      const { port } = await services[kind](t, approving([tool]))
      const proxy = await chaosProxy(t, { port }, { seed })
      const runId = `run-${count++}`
      const paused = await run(remote(proxy.url, impatient), 'remove {"file":"a"}', { runId })
      t.equal(paused.code, undefined, `seed ${seed}`)
      t.equal(paused.pending.length, 1)
      const resumed = await run(remote(proxy.url, impatient), decide(paused.pending, approved), { runId })
      t.equal(resumed.code, undefined, `seed ${seed}`)
      t.strictSame(tool.ran, approved ? [{ file: 'a' }] : [])
      t.equal(textOf(resumed.message), 'Done.')
    }), { numRuns: 12, seed: 11 })
  })
}

t.test('before a service like the reference, bad networks change neither the result nor what was approved, and tell nothing twice', async (t) => {
  let count = 0
  await fc.assert(fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 31 }), async (seed) => {
    const tool = noted('remove')
    const { port, tasks } = await fakeTasks(t, approving([tool]), { like: 'reference' })
    const proxy = await chaosProxy(t, { port }, { seed })
    const runId = `run-${count++}`
    const paused = await run(remote(proxy.url, impatient), 'remove {"file":"a"}', { runId })
    t.equal(paused.code, undefined, `seed ${seed}`)
    t.equal(paused.pending.length, 1)
    const resumed = await run(remote(proxy.url, impatient), decide(paused.pending, true), { runId })
    t.equal(resumed.code, undefined, `seed ${seed}`)
    t.strictSame(tool.ran, [{ file: 'a' }])
    t.equal(textOf(resumed.message), 'Done.')
    for (const { events } of [paused, resumed]) t.equal(new Set(events.map(({ id }) => id)).size, events.length)
    t.strictSame([...tasks.values()].map(({ runs }) => runs), [2], 'asked once, gone on with once')
  }), { numRuns: 12, seed: 13 })
})
