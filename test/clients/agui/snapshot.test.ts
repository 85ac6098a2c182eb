import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'
import { initialFold, snapshotEvents, stepFold, type TranscriptFold } from '../../../plugins/ag-ui/snapshot.ts'
import { clients } from './clients.ts'
import { agentEvents, ends, project } from './streams.ts'

for (const client of clients) {
  t.test(`client ${client.version} that comes late has the same messages, state and interrupts as one that watched`, async (t) => {
    const input: NormalisedInput = {
      threadId: 'thread',
      runId: 'run',
      messages: [{ id: 'u1', role: 'user', content: 'Hi' }, { id: 'g1', role: 'reasoning', content: 'Hm.' }, { id: 'a1', role: 'assistant', content: 'Hello' }],
      tools: [{ name: 'paint', description: '' }],
      context: [],
      state: { cart: [] },
      ...client.profile === 'v1' && { protocolVersion: '1.0' }
    }
    await fc.assert(fc.asyncProperty(agentEvents, ends, fc.boolean(), fc.double({ min: 0, max: 1, noNaN: true }), async (events, end, echoInput, cut) => {
      const lines = project(events, end, { input }, { enableReasoning: true, subagentEvents: 'flatten', echoInput })
      const seen = Math.round(cut * lines.length)
      let fold = initialFold(input)
      for (const line of lines.slice(0, seen)) fold = stepFold(fold, line)
      fold = JSON.parse(JSON.stringify(fold)) as TranscriptFold // as a store would give it back
      const late = await client.watch([...snapshotEvents(fold).map((event) => JSON.stringify(event)), ...lines.slice(Math.max(seen, 1))], {})
      const live = await client.watch(lines, { messages: input.messages, state: input.state })
      if (!isDeepStrictEqual(late, live)) throw new Error(`after ${seen} of\n${lines.join('\n')}\nlate ${JSON.stringify(late)}\nlive ${JSON.stringify(live)}`)
    }), { numRuns: 100 })
    t.pass('100 streams, each cut somewhere')
  })
}
