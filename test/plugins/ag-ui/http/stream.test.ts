import t from 'tap'
import { eventsOf, serveApp } from '../../../helpers/ag-ui-app.ts'
import { scripted } from '../../../helpers/steered-agent.ts'

t.test('streams a plain answer as events with dense ids, headers first', async (t) => {
  const agent = scripted([
    { type: 'TEXT_BLOCK_DELTA', replyId: 'r1', delta: 'Hel' },
    { type: 'TEXT_BLOCK_DELTA', replyId: 'r1', delta: 'lo.' }
  ])
  const server = await serveApp(t, { agent })
  const client = await server.run()
  t.equal(client.status, 200)
  t.equal(client.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.equal(client.headers['cache-control'], 'no-cache, no-transform')
  t.equal(client.headers['x-accel-buffering'], 'no')
  t.strictSame(await eventsOf(client), [
    {
      type: 'RUN_STARTED',
      threadId: 'thread',
      runId: 'run',
      protocolVersion: '1.0',
      input: { threadId: 'thread', runId: 'run', protocolVersion: '1.0', messages: [{ id: 'u1', role: 'user', content: 'Hi' }], tools: [], context: [] }
    },
    { type: 'TEXT_MESSAGE_START', messageId: 'r1', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r1', delta: 'Hel' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r1', delta: 'lo.' },
    { type: 'TEXT_MESSAGE_END', messageId: 'r1' },
    { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run', outcome: { type: 'success' } }
  ])
  t.equal(await client.closed, 'ended')
})
