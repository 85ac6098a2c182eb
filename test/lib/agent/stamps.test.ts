import t from 'tap'
import { type AgentEvent, Normaliser } from '../../../lib/agent/index.ts'

t.test('whoever pushes may say what time it is, for events that bring none', async (t) => {
  let tick = 0
  const normaliser = new Normaliser({ agentName: 'agent', sessionId: 's', now: () => `tick ${++tick}` })
  const events: AgentEvent[] = []
  const emit = (event: AgentEvent): void => { events.push(event) }
  normaliser.push({ type: 'TEXT_BLOCK_DELTA', delta: 'a' }, emit)
  normaliser.push({ type: 'TEXT_BLOCK_DELTA', delta: 'b' }, emit)
  normaliser.push({ type: 'TEXT_BLOCK_DELTA', delta: 'c', id: 'mine', createdAt: '2026-01-02T03:04:05Z' }, emit)
  normaliser.push({ type: 'TEXT_BLOCK_DELTA', delta: 'd', createdAt: 'soon' }, emit)
  t.strictSame(events.map(({ type, createdAt }) => [type, createdAt]), [
    ['AGENT_START', 'tick 1'], ['TEXT_BLOCK_START', 'tick 2'], ['TEXT_BLOCK_DELTA', 'tick 3'], ['TEXT_BLOCK_DELTA', 'tick 4'],
    ['TEXT_BLOCK_DELTA', '2026-01-02T03:04:05Z'], ['TEXT_BLOCK_DELTA', 'tick 5']
  ])
  t.equal(events[4]?.id, 'mine')
  t.equal(new Set(events.map(({ id }) => id)).size, 6)
})
