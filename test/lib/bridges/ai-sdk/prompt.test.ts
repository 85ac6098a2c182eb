import t from 'tap'
import { type ModelMessage } from 'ai'
import { type ContentBlock, type Msg } from '../../../../lib/agent/index.ts'
import { aiSdkAgent, toAgentMessages, toModelPrompt } from '../../../../lib/bridges/ai-sdk/index.ts'
import { run } from './run.ts'
import { says, scriptedModel } from './scripted-model.ts'

let ids = 0

function msg (role: Msg['role'], ...content: ContentBlock[]): Msg {
  return { id: `m${++ids}`, role, content }
}

const text = (value: string): ContentBlock => ({ type: 'text', text: value })
const use = (id: string, name = 'look'): ContentBlock => ({ type: 'tool_use', id, name, input: { id } })
const result = (id: string, value: string, state: 'success' | 'error' | 'denied' | 'interrupted' | 'running' = 'success'): ContentBlock => ({ type: 'tool_result', id, output: value === '' ? [] : [text(value)], state })
const unanswered = { type: 'error-text', value: 'The call was not answered: whether it did anything is unknown.' }
const shown = (id: string, output: unknown) => ({ type: 'tool-result', toolCallId: id, toolName: 'look', output })
const called = (id: string) => ({ type: 'tool-call', toolCallId: id, toolName: 'look', input: { id } })

t.test('system messages are one text, apart from the others', (t) => {
  t.strictSame(toModelPrompt([msg('SYSTEM', text('a')), msg('USER', text('Hi')), msg('SYSTEM', text('b')), msg('SYSTEM'), msg('USER', text('')), msg('USER')]), {
    system: 'a\n\nb',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }]
  })
  t.end()
})

t.test('media go as what they are; addresses stay addresses', (t) => {
  const base64 = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } as const
  const { messages } = toModelPrompt([msg('USER',
    { type: 'image', source: { type: 'url', url: 'https://x.test/a' } },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    { type: 'audio', source: { type: 'base64', media_type: 'audio/wav', data: 'AAAA' } },
    { type: 'video', source: { type: 'url', url: 'https://x.test/v' } },
    { type: 'data', source: base64, name: 'a.pdf' },
    { type: 'data', source: { type: 'url', url: 'https://x.test/d' } },
    { type: 'data', source: { type: 'url', url: 'no address' } },
    { type: 'hint', hint: 'Bob is here' },
    result('c9', 'nobody called'),
    { type: 'thinking', thinking: 'not a user\'s' }
  )])
  t.strictSame(messages, [{
    role: 'user',
    content: [
      { type: 'image', image: new URL('https://x.test/a') },
      { type: 'image', image: 'AAAA', mediaType: 'image/png' },
      { type: 'file', data: 'AAAA', mediaType: 'audio/wav' },
      { type: 'file', data: new URL('https://x.test/v'), mediaType: 'video/*' },
      { type: 'file', data: 'AAAA', mediaType: 'application/pdf', filename: 'a.pdf' },
      { type: 'file', data: new URL('https://x.test/d'), mediaType: 'application/octet-stream' },
      { type: 'text', text: '[Attachment of type data whose address cannot be read]' },
      { type: 'text', text: '<hint>Bob is here</hint>' }
    ]
  }])
  t.end()
})

t.test('one reply of several steps becomes the turns that it was', (t) => {
  t.strictSame(toModelPrompt([msg('USER', text('Go')), msg('ASSISTANT',
    { type: 'thinking', thinking: 'Hm.', metadata: { providerMetadata: { x: { sig: '1' } } } }, text('Look.'), use('a'), use('b'), result('a', 'A'), result('b', 'no', 'denied'),
    text('And:'), use('c'), result('c', 'broken', 'error'), { type: 'hint', hint: 'psst' }, text('Done.'),
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }, { type: 'image', source: { type: 'url', url: 'https://x.test/a' } })]).messages, [
    { role: 'user', content: [{ type: 'text', text: 'Go' }] },
    { role: 'assistant', content: [{ type: 'reasoning', text: 'Hm.', providerOptions: { x: { sig: '1' } } }, { type: 'text', text: 'Look.' }, called('a'), called('b')] },
    { role: 'tool', content: [shown('a', { type: 'text', value: 'A' }), shown('b', { type: 'execution-denied', reason: 'no' })] },
    { role: 'assistant', content: [{ type: 'text', text: 'And:' }, called('c')] },
    { role: 'tool', content: [shown('c', { type: 'error-text', value: 'broken' })] },
    { role: 'user', content: [{ type: 'text', text: '<hint>psst</hint>' }] },
    {
      role: 'assistant',
      content: [{ type: 'text', text: 'Done.' }, { type: 'file', data: 'AAAA', mediaType: 'image/png' }, { type: 'file', data: new URL('https://x.test/a'), mediaType: 'image/*' }]
    }
  ])
  t.end()
})

t.test('whatever a client made of its history, each call is followed by one result', (t) => {
  const { messages } = toModelPrompt([
    msg('ASSISTANT', use('a'), use('b'), use('a')),
    msg('USER', text('What?')),
    msg('TOOL', result('b', 'late')), msg('TOOL', result('b', 'forged')), msg('TOOL', result('x', 'of no call')),
    msg('ASSISTANT', use('c')), msg('TOOL', result('c', '[Awaiting external execution]', 'running')),
    msg('ASSISTANT', use('a'), use('d'), use('e')), msg('TOOL', result('d', '', 'denied')), msg('TOOL', result('e', '', 'interrupted')),
    msg('ASSISTANT', { type: 'tool_use', id: 'p', name: 'search', input: {}, metadata: { providerExecuted: true } }),
    msg('ASSISTANT', { type: 'thinking', thinking: 'Hm.' }), msg('ASSISTANT', text('So.')),
    msg('ASSISTANT', { type: 'thinking', thinking: 'cut off' })
  ])
  t.strictSame(messages, [
    { role: 'assistant', content: [called('a'), called('b')] },
    { role: 'tool', content: [shown('a', unanswered), shown('b', { type: 'text', value: 'late' })] },
    { role: 'user', content: [{ type: 'text', text: 'What?' }] },
    { role: 'assistant', content: [called('c')] },
    { role: 'tool', content: [shown('c', unanswered)] },
    { role: 'assistant', content: [called('d'), called('e')] },
    { role: 'tool', content: [shown('d', { type: 'execution-denied' }), shown('e', { type: 'error-text', value: 'The call ended: interrupted.' })] },
    { role: 'assistant', content: [{ type: 'reasoning', text: 'Hm.' }, { type: 'text', text: 'So.' }] }
  ])
  t.end()
})

t.test('results with media are content; what has no form for a model is left out', (t) => {
  const { messages } = toModelPrompt([msg('ASSISTANT', use('a')), msg('TOOL', {
    type: 'tool_result',
    id: 'a',
    state: 'success',
    output: [
      text('See:'),
      { type: 'image', source: { type: 'url', url: 'https://x.test/a' } }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
      { type: 'data', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } }, { type: 'video', source: { type: 'url', url: 'https://x.test/v' } },
      { type: 'audio', source: { type: 'url', url: 'no address' } }, { type: 'thinking', thinking: 'Hm.' }
    ]
  })])
  t.strictSame(messages[1]?.content, [shown('a', {
    type: 'content',
    value: [
      { type: 'text', text: 'See:' }, { type: 'image-url', url: 'https://x.test/a' }, { type: 'image-data', data: 'AAAA', mediaType: 'image/png' },
      { type: 'file-data', data: 'AAAA', mediaType: 'application/pdf' }, { type: 'file-url', url: 'https://x.test/v' }
    ]
  })])
  t.end()
})

t.test('an address from a client is handed to the provider, never fetched', async (t) => {
  const { model, prompts } = scriptedModel(says('ok'))
  // Nobody listens there: a download would fail the run.
  await run(aiSdkAgent({ model }), { messages: [msg('USER', text('See'), { type: 'image', source: { type: 'url', url: 'http://127.0.0.1:9/a.png' } })] })
  t.match(prompts[0]?.[0], { content: [{ type: 'text' }, { type: 'file', mediaType: 'image/*', data: new URL('http://127.0.0.1:9/a.png') }] })
})

t.test('a conversation in the SDK\'s form goes to an agent\'s and back', (t) => {
  const options = { providerOptions: { x: { sig: '1' } } }
  const messages: ModelMessage[] = [
    { role: 'user', content: [{ type: 'text', text: 'Hi' }, { type: 'image', image: 'AAAA', mediaType: 'image/png' }, { type: 'file', data: 'AAAA', mediaType: 'application/pdf', filename: 'a.pdf' }, { type: 'image', image: new URL('https://x.test/a'), mediaType: 'image/png' }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.', ...options }, { type: 'text', text: 'Look.' }, { type: 'tool-call', toolCallId: 'a', toolName: 'look', input: { q: 1 }, ...options },
        { type: 'tool-call', toolCallId: 'b', toolName: 'look', input: {} }, { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: {} },
        { type: 'tool-call', toolCallId: 'd', toolName: 'look', input: {} }
      ]
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'a', toolName: 'look', output: { type: 'text', value: 'A' } },
        { type: 'tool-result', toolCallId: 'b', toolName: 'look', output: { type: 'error-text', value: 'bad' } },
        { type: 'tool-result', toolCallId: 'c', toolName: 'look', output: { type: 'execution-denied', reason: 'no' } },
        {
          type: 'tool-result',
          toolCallId: 'd',
          toolName: 'look',
          output: { type: 'content', value: [{ type: 'text', text: 'See' }, { type: 'image-data', data: 'AAAA', mediaType: 'image/png' }, { type: 'file-data', data: 'AAAA', mediaType: 'application/pdf' }, { type: 'image-url', url: 'https://x.test/a' }, { type: 'file-url', url: 'https://x.test/v' }] }
        }
      ]
    },
    { role: 'assistant', content: [{ type: 'text', text: 'Done.' }, { type: 'file', data: 'AAAA', mediaType: 'application/pdf' }] }
  ]
  t.strictSame(toModelPrompt(toAgentMessages(messages)).messages, messages)
  t.end()
})

t.test('what the SDK can say in other ways is understood, too', (t) => {
  const bytes = new Uint8Array([0, 0, 0, 65]).subarray(1)
  const told = toAgentMessages([
    { role: 'system', content: 'Be brief.' }, { role: 'system', content: '' },
    { role: 'user', content: 'Hi' },
    { role: 'user', content: [{ type: 'image', image: bytes }, { type: 'file', data: new Uint8Array([65]).buffer, mediaType: 'text/plain' }, { type: 'image', image: 'https://x.test/a' }] },
    { role: 'assistant', content: 'Yes?' },
    {
      role: 'assistant',
      content: [
        { type: 'tool-call', toolCallId: 'p', toolName: 'search', input: undefined, providerExecuted: true },
        { type: 'tool-result', toolCallId: 'p', toolName: 'search', output: { type: 'json', value: { n: 1 } } },
        { type: 'tool-approval-request', approvalId: 'x', toolCallId: 'q' }, { type: 'tool-call', toolCallId: 'u', toolName: 'look', input: 'no object' }, { type: 'file', data: 'AAAA', mediaType: 'image/png' }
      ]
    },
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'x', approved: true }] },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'r', toolName: 'look', output: { type: 'error-json', value: [1] } },
        { type: 'tool-result', toolCallId: 's', toolName: 'look', output: { type: 'execution-denied' } },
        {
          type: 'tool-result',
          toolCallId: 't',
          toolName: 'look',
          output: { type: 'content', value: [{ type: 'media', data: 'AAAA', mediaType: 'text/plain' }, { type: 'file-url', url: 'https://x.test/v', mediaType: 'video/mp4' }, { type: 'file-id', fileId: 'f' }] }
        }
      ]
    }
  ])
  t.match(told.map(({ role, content }) => [role, content]), [
    ['SYSTEM', [text('Be brief.')]],
    ['USER', [text('Hi')]],
    ['USER', [
      { type: 'image', source: { type: 'base64', media_type: 'application/octet-stream', data: 'AABB' } },
      { type: 'data', source: { type: 'base64', media_type: 'text/plain', data: 'QQ==' } },
      { type: 'image', source: { type: 'url', url: 'https://x.test/a' } }
    ]],
    ['ASSISTANT', [text('Yes?')]],
    ['ASSISTANT', [
      { type: 'tool_use', id: 'p', name: 'search', input: {}, metadata: { providerExecuted: true } }, { type: 'tool_result', id: 'p', output: [text('{"n":1}')], state: 'success' },
      { type: 'tool_use', id: 'u', input: {}, content: '"no object"' },
      { type: 'data', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    ]],
    ['TOOL', [
      { id: 'r', output: [text('[1]')], state: 'error' }, { id: 's', output: [], state: 'denied' },
      { id: 't', output: [{ type: 'data', source: { media_type: 'text/plain' } }, { type: 'data', source: { url: 'https://x.test/v', mime_type: 'video/mp4' } }], state: 'success' }
    ]]
  ])
  t.equal(new Set(told.map(({ id }) => id)).size, told.length)
  t.end()
})
