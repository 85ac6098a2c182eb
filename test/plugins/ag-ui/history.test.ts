import t from 'tap'
import { type Msg } from '../../../lib/agent/index.ts'
import { toAgUiMessages } from '../../../plugins/ag-ui/history.ts'
import { toMsgs } from '../../../plugins/ag-ui/messages.ts'
import { type Message } from '../../../plugins/ag-ui/schemas.ts'

const reply: Msg = {
  id: 'm',
  role: 'ASSISTANT',
  content: [
    { type: 'thinking', thinking: 'hm', metadata: { 'agui.encryptedValue': 'sig' } },
    { type: 'text', text: 'Looking' }, { type: 'text', text: 'up' },
    { type: 'tool_use', id: 'c1', name: 'f', input: { a: 1 }, metadata: { 'agui.encryptedValue': 'e' } }, { type: 'tool_use', id: 'c2', name: 'f', input: {}, content: '{ }' },
    { type: 'text', text: 'both' },
    { type: 'tool_result', id: 'c1', output: [{ type: 'text', text: 'x' }], state: 'success' },
    { type: 'tool_result', id: 'c2', output: [], state: 'error' },
    { type: 'hint', hint: 'h' },
    { type: 'text', text: 'Done' }
  ]
}

t.test('a reply becomes the messages that it was streamed as', async (t) => {
  const messages: Message[] = [
    {
      id: 'm',
      role: 'assistant',
      content: 'Looking\nup',
      toolCalls: [
        { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' }, encryptedValue: 'e' }, { id: 'c2', type: 'function', function: { name: 'f', arguments: '{ }' } }
      ]
    },
    { id: 'm:2', role: 'assistant', content: 'both' },
    { id: 'm:c1', role: 'tool', toolCallId: 'c1', content: 'x' },
    { id: 'm:c2', role: 'tool', toolCallId: 'c2', content: '', error: 'error' },
    { id: 'm:3', role: 'assistant', content: 'Done' }
  ]
  t.strictSame(toAgUiMessages([reply], { profile: 'v1' }), messages)
  t.strictSame(toAgUiMessages([reply], { profile: 'v1', enableReasoning: true }), [{ id: 'm-reasoning', role: 'reasoning', content: 'hm', encryptedValue: 'sig' }, ...messages])
})

t.test('media come back as parts, except in the results of clients before 1.0', async (t) => {
  const source = { type: 'base64' as const, media_type: 'image/png', data: 'AAAA' }
  const messages: Msg[] = [
    { id: 'u', role: 'USER', content: [{ type: 'text', text: 'see' }, { type: 'image', source }, { type: 'hint', hint: 'h' }] },
    { id: 't', role: 'TOOL', content: [{ type: 'tool_result', id: 'c', output: [{ type: 'image', source }], state: 'success' }] }
  ]
  const image = { type: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' } }
  t.strictSame(toAgUiMessages(messages, { profile: 'v1' }), [
    { id: 'u', role: 'user', content: [{ type: 'text', text: 'see' }, image] }, { id: 't', role: 'tool', toolCallId: 'c', content: [image] }
  ])
  t.match(toAgUiMessages(messages, { profile: 'legacy' })[1], { content: '[image: image/png]' })
})

t.test('what a client sent comes back as it was', async (t) => {
  const messages: Message[] = [
    { id: 's', role: 'system', content: 'Be kind.', name: 'host', metadata: { k: 1 } },
    { id: 'u', role: 'user', content: 'Hi' },
    { id: 'a-reasoning', role: 'reasoning', content: 'Hm.' },
    { id: 'a', role: 'assistant', content: 'Hello', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] },
    { id: 't', role: 'tool', toolCallId: 'c', content: 'ok' }
  ]
  t.strictSame(toAgUiMessages(toMsgs(messages).messages, { profile: 'v1', enableReasoning: true }), messages)
})
