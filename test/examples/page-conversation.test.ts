// What the page knows is what the server says a client knows, whatever an agent does and wherever the page is reloaded.
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { type NormalisedInput } from '../../plugins/ag-ui/schemas.ts'
import { initialFold, snapshotEvents, stepFold } from '../../plugins/ag-ui/snapshot.ts'
import { agentEvents, ends, project } from '../clients/agui/streams.ts'

interface Conversation {
  messages: unknown[]
  interrupts: { readonly id: string }[]
  pageCalls: string[]
  run: { threadId: string, runId?: string, request?: unknown, lastEventId?: string } | undefined
  usage: Record<string, unknown>
}

// The page is JavaScript without types.
const path: string = new URL('../../examples/page/conversation.js', import.meta.url).href
const { applyEvent, newConversation } = await import(path) as {
  applyEvent (conversation: Conversation, event: unknown, id?: string): void
  newConversation (agentId: string): Conversation
}

const input: NormalisedInput = {
  threadId: 'thread',
  runId: 'run',
  protocolVersion: '1.0',
  messages: [{ id: 'u0', role: 'user', content: 'Hi' }, { id: 'g0', role: 'reasoning', content: 'Hm.' }, { id: 'a0', role: 'assistant', content: 'Hello' }, { id: 'u1', role: 'user', content: 'Go' }],
  tools: [{ name: 'paint', description: '' }],
  context: []
}

function asking (): Conversation {
  return { ...newConversation('agent'), messages: structuredClone(input.messages), run: { threadId: 'thread', runId: 'run', request: input } }
}

/** What a page knows in the end. */
function known ({ messages, interrupts, pageCalls, run, usage }: Conversation): unknown {
  return { messages, interrupts, pageCalls, run, usage }
}

t.test('a page that is reloaded anywhere knows what the server\'s own record of a client says', async (t) => {
  const mapping = { enableReasoning: true }
  fc.assert(fc.property(agentEvents, ends, fc.double({ min: 0, max: 1, noNaN: true }), (events, end, cut) => {
    const lines = project(events, end, { input }, mapping)
    const at = Math.round(cut * (lines.length - 1))
    const fold = lines.reduce(stepFold, initialFold(structuredClone(input)))

    const undisturbed = asking()
    lines.forEach((line, index) => applyEvent(undisturbed, JSON.parse(line), `e.${index + 1}`))

    // Reloaded: what was saved is read again, and the server goes on after the last event it names.
    let reloaded = asking()
    for (let index = 0; index < lines.length; index++) {
      if (index === at) reloaded = JSON.parse(JSON.stringify(reloaded))
      applyEvent(reloaded, JSON.parse(lines[index] ?? ''), `e.${index + 1}`)
    }

    // A cursor that the server has forgotten: told from a snapshot, or from the beginning.
    const behind = lines.slice(0, at).reduce(stepFold, initialFold(structuredClone(input)))
    const rejoined = [[...snapshotEvents(JSON.parse(JSON.stringify(behind))), ...lines.slice(Math.max(at, 1)).map((line) => JSON.parse(line) as unknown)], lines.map((line) => JSON.parse(line) as unknown)]
      .map((stream) => {
        const conversation = asking()
        for (let index = 0; index < at; index++) applyEvent(conversation, JSON.parse(lines[index] ?? ''), `e.${index + 1}`)
        for (const event of stream) applyEvent(conversation, event)
        return conversation
      })

    const expected = known(undisturbed)
    for (const other of [reloaded, ...rejoined]) if (!isDeepStrictEqual(known(other), expected)) throw new Error(`after ${at} of\n${lines.join('\n')}\n${JSON.stringify(known(other))}\ninstead of ${JSON.stringify(expected)}`)
    if (!isDeepStrictEqual(JSON.parse(JSON.stringify(undisturbed.messages)), JSON.parse(JSON.stringify(fold.messages)))) throw new Error(`${lines.join('\n')}\n${JSON.stringify(undisturbed.messages)}\ninstead of ${JSON.stringify(fold.messages)}`)
  }), { numRuns: 300 })
  t.pass('300 streams, each reloaded somewhere')
})

t.test('a run is asked for until its first event has come, and rejoined by its last one from then on', async (t) => {
  const conversation = asking()
  const { run } = conversation
  t.strictSame(run, { threadId: 'thread', runId: 'run', request: input })
  const [first, ...others] = project([{ type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'Hi' }], 'returned', { input }).map((line) => JSON.parse(line) as unknown)
  applyEvent(conversation, first, 'e.1')
  t.match(run, { lastEventId: 'e.1', request: undefined })
  others.forEach((event, index) => applyEvent(conversation, event, `e.${index + 2}`))
  t.equal(conversation.run, undefined)
})
