import t from 'tap'
import { type AgentEventInit } from '../../../../lib/agent/index.ts'
import { Projection, type ProjectionOptions } from '../../../../plugins/agent-protocol/client/projection.ts'
import { type TaskUpdate } from '../../../../plugins/agent-protocol/client/task-update.ts'

const event = (init: AgentEventInit): TaskUpdate => ({ kind: 'event', event: init })
const text = (delta: string): TaskUpdate => event({ type: 'TEXT_BLOCK_DELTA', delta, metadata: { taskId: 't' } })
const result = (words: string): TaskUpdate => event({ type: 'AGENT_RESULT', result: { id: 'm', role: 'ASSISTANT', content: [{ type: 'text', text: words }] } })
const success = (words?: string): TaskUpdate => ({ kind: 'end', status: 'success', ...words !== undefined && { result: words } })

function project (updates: readonly TaskUpdate[], options: Partial<ProjectionOptions> = {}): string[] {
  const projection = new Projection({ taskId: 't', agentName: 'far', parentSessionId: 's', isTextTold: true, ...options })
  return updates.flatMap((update) => projection.take(update)).map((told) => {
    switch (told.type) {
      case 'TEXT_BLOCK_DELTA': return `${told.delta} ${JSON.stringify(told.metadata)}`
      case 'AGENT_RESULT': return `result ${told.result.content.map((block) => block.type === 'text' ? block.text : block.type).join()}`
      default: return told.type
    }
  })
}

const meta = '{"taskId":"t","parentSessionId":"s"}'
const [start, end] = [event({ type: 'AGENT_START' }), event({ type: 'AGENT_END' })]

t.test('several executions of a task have one start, the last result and the last end', async (t) => {
  t.strictSame(project([start, text('a'), result('asking'), end, start, text('b'), result('done'), end, success('done')]), ['AGENT_START', `a ${meta}`, `b ${meta}`, 'result done', 'AGENT_END'])
  t.strictSame(project([start, result('asking'), end, start, success('done')]), ['AGENT_START', 'result done'], 'what an earlier one gave is no result')
})

t.test('a child\'s start, result and end are its own', async (t) => {
  const child = (init: AgentEventInit): TaskUpdate => event({ ...init, source: 'kid' })
  t.strictSame(project([start, child({ type: 'AGENT_START' }), child({ type: 'AGENT_START' }), child({ type: 'AGENT_END' }), child({ type: 'TEXT_BLOCK_DELTA', delta: 'x' }), success('y')]), [
    'AGENT_START', 'AGENT_START', 'AGENT_START', 'AGENT_END', 'x {"parentSessionId":"s"}', 'result y'
  ])
})

t.test('what a gap has swallowed of the text is told at the end where it fits, and only then', async (t) => {
  const gap: TaskUpdate = { kind: 'gap', reason: 'evicted', missed: 2 }
  t.strictSame(project([start, text('one '), gap, success('one two')]), ['AGENT_START', `one  ${meta}`, 'CUSTOM', `two ${meta}`, 'result one two'])
  t.strictSame(project([start, text('one '), gap, text('three'), success('one two three')]), ['AGENT_START', `one  ${meta}`, 'CUSTOM', `three ${meta}`, 'result one two three'])
  t.strictSame(project([start, text('one'), success('one two')]), ['AGENT_START', `one ${meta}`, 'result one two'], 'without a gap the service has told what there was')
  t.strictSame(project([start, text('old'), end, start, gap, success('new')]), ['AGENT_START', `old ${meta}`, 'CUSTOM', `new ${meta}`, 'result new'], 'the text of this execution counts')
  t.strictSame(project([start, success('all')], { isTextTold: false }), ['AGENT_START', `all ${meta}`, 'result all'])
  t.strictSame(project([start, success()], { isTextTold: false }), ['AGENT_START'])
  const long = 'x'.repeat(600_000)
  t.equal(project([text(long), text(long), text('y'), gap, success(`${long}${long}yz`)]).length, 5, 'a text that is too long to be remembered is in the result alone')
})

t.test('failures are thrown with what the service says', async (t) => {
  const failure = (update: TaskUpdate): unknown => {
    try {
      return project([update])
    } catch (error) {
      return error
    }
  }
  t.match(failure({ kind: 'end', status: 'error', error: 'no paper', code: 'out_of_paper' }), { code: 'out_of_paper', publicMessage: 'no paper' })
  t.match(failure({ kind: 'end', status: 'error', error: 'no paper' }), { code: 'remote_failed' })
  t.match(failure({ kind: 'end', status: 'cancelled' }), { code: 'remote_cancelled' })
})
