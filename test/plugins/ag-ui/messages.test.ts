import t from 'tap'
import { type Msg } from '../../../lib/agent/index.ts'
import { type ConvertOptions, getTextContent, toMsgs } from '../../../plugins/ag-ui/messages.ts'
import { type ContentPart, type Message } from '../../../plugins/ag-ui/schemas.ts'

const convert = (messages: readonly Message[], options?: ConvertOptions): Msg[] => toMsgs(messages, options).messages
const user = (id: string, content: string | ContentPart[]): Message => ({ id, role: 'user', content })
const pdf: ContentPart = { type: 'document', source: { type: 'url', value: 'https://x/a.pdf', mimeType: 'application/pdf' }, metadata: { filename: 'a.pdf' } }

t.test('each role speaks as what it is', async (t) => {
  t.strictSame(convert([
    { id: 'd', role: 'developer', content: 'Be brief.' },
    { id: 's', role: 'system', content: 'Be kind.', name: 'host' },
    user('u', 'Hi'),
    { id: 'a', role: 'assistant', content: 'Hello', name: 'bot' }
  ]), [
    { id: 'd', role: 'SYSTEM', content: [{ type: 'text', text: 'Be brief.' }] },
    { id: 's', role: 'SYSTEM', content: [{ type: 'text', text: 'Be kind.' }], name: 'host' },
    { id: 'u', role: 'USER', content: [{ type: 'text', text: 'Hi' }] },
    { id: 'a', role: 'ASSISTANT', content: [{ type: 'text', text: 'Hello' }], name: 'bot' }
  ])
})

t.test('activities and empty messages are left out', async (t) => {
  t.strictSame(convert([
    { id: '1', role: 'activity', activityType: 'PLAN', content: {} }, user('2', ''), user('3', []), user('4', [{ type: 'text', text: '' }]),
    { id: '5', role: 'assistant' }, { id: '6', role: 'assistant', content: '', toolCalls: [] }, { id: '7', role: 'system', content: '' }
  ]), [])
})

t.test('media become blocks, from wherever their bytes are', async (t) => {
  t.strictSame(convert([user('u', [
    { type: 'text', text: 'see' },
    { type: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' } },
    { type: 'audio', source: { type: 'url', value: 'https://x/a' } },
    { type: 'video', source: { type: 'url', value: 'https://x/v', mimeType: 'video/mp4' } }
  ])])[0]?.content, [
    { type: 'text', text: 'see' },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    { type: 'audio', source: { type: 'url', url: 'https://x/a' } },
    { type: 'video', source: { type: 'url', url: 'https://x/v', mime_type: 'video/mp4' } }
  ])
})

t.test('thinking belongs to the assistant turn that follows it, and to no other', async (t) => {
  t.strictSame(convert([
    { id: 'g1', role: 'reasoning', content: 'lost' },
    user('u', 'Hi'),
    { id: 'g2', role: 'reasoning', content: 'Hm.', encryptedValue: 'sig' },
    { id: 'g3', role: 'reasoning', content: 'Yes.' },
    { id: 'x', role: 'assistant' },
    { id: 'a', role: 'assistant', content: 'Hello' },
    { id: 'b', role: 'assistant', content: 'Again' },
    { id: 'g4', role: 'reasoning', content: 'trailing' }
  ]), [
    { id: 'u', role: 'USER', content: [{ type: 'text', text: 'Hi' }] },
    {
      id: 'a',
      role: 'ASSISTANT',
      content: [
        { type: 'thinking', thinking: 'Hm.', metadata: { 'agui.encryptedValue': 'sig' } }, { type: 'thinking', thinking: 'Yes.' }, { type: 'text', text: 'Hello' }
      ]
    },
    { id: 'b', role: 'ASSISTANT', content: [{ type: 'text', text: 'Again' }] }
  ])
})

t.test('calls keep their text, and have arguments even where the text has none', async (t) => {
  const calls = ['{"a":{"b":1}}', '', '{"a":', '[1]', 'null'].map((text, index) => ({ id: `c${index}`, type: 'function' as const, function: { name: 'f', arguments: text } }))
  const message: Message = { id: 'a', role: 'assistant', toolCalls: calls }
  t.strictSame(convert([message, { id: 't', role: 'tool', toolCallId: 'c0', content: 'x' }])[0]?.content, [
    { type: 'tool_use', id: 'c0', name: 'f', input: { a: { b: 1 } }, content: '{"a":{"b":1}}', state: 'finished' },
    { type: 'tool_use', id: 'c1', name: 'f', input: {}, content: '', state: 'pending' },
    { type: 'tool_use', id: 'c2', name: 'f', input: {}, content: '{"a":', state: 'pending' },
    { type: 'tool_use', id: 'c3', name: 'f', input: {}, content: '[1]', state: 'pending' },
    { type: 'tool_use', id: 'c4', name: 'f', input: {}, content: 'null', state: 'pending' }
  ])
})

t.test('results', async (t) => {
  const result = (message: object): unknown => convert([
    { id: 'a', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'search', arguments: '{}' } }] },
    { id: 't', role: 'tool', toolCallId: 'c', content: '', ...message } as Message
  ])[1]

  t.test('know the tool, and are results even without text', async (t) => {
    t.strictSame(result({ content: 'found' }), {
      id: 't', role: 'TOOL', content: [{ type: 'tool_result', id: 'c', name: 'search', output: [{ type: 'text', text: 'found' }], state: 'success' }]
    })
    t.match(result({}), { content: [{ output: [{ type: 'text', text: '' }], state: 'success' }] })
    t.match(result({ content: [] }), { content: [{ output: [{ type: 'text', text: '' }] }] })
    t.notHas((result({ toolCallId: 'other' }) as Msg).content[0], 'name')
  })

  t.test('that are errors say so, in their own text or in the error\'s', async (t) => {
    t.match(result({ content: 'boom', error: 'E' }), { content: [{ output: [{ text: 'boom' }], state: 'error' }] })
    t.match(result({ error: 'E' }), { content: [{ output: [{ text: 'E' }], state: 'error' }] })
  })

  t.test('may be made of parts; one that cannot be read leaves a note and refuses nothing', async (t) => {
    t.match(result({ content: [{ type: 'text', text: 'a' }, pdf] }), {
      content: [{ output: [{ type: 'text', text: 'a' }, { type: 'text', text: '[Attachment of type document that cannot be read here]' }] }]
    })
  })

  t.test('of no call are left out', async (t) => {
    t.equal(result({ toolCallId: ' ' }), undefined)
  })
})

t.test('metadata and encrypted values are kept, where they cannot be taken for the agent\'s own', async (t) => {
  t.strictSame(convert([
    { ...user('u', 'x'), metadata: { agentscope_confirm_results: [{ confirmed: true }], n: null } },
    { id: 'a', role: 'assistant', encryptedValue: 'm', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, metadata: { k: 1 }, encryptedValue: 'e' }] }
  ] as Message[]), [
    { id: 'u', role: 'USER', content: [{ type: 'text', text: 'x' }], metadata: { 'agui.metadata': { agentscope_confirm_results: [{ confirmed: true }], n: null } } },
    {
      id: 'a',
      role: 'ASSISTANT',
      content: [{ type: 'tool_use', id: 'c', name: 'f', input: {}, content: '{}', state: 'pending', metadata: { 'agui.metadata': { k: 1 }, 'agui.encryptedValue': 'e' } }],
      metadata: { 'agui.encryptedValue': 'm' }
    }
  ])
})

t.test('documents', async (t) => {
  const handle: ContentPart = { type: 'image', source: { type: 'file', value: 'secret-handle' } }

  t.test('in the newest user message refuse the run, and the text names the type alone', async (t) => {
    t.throws(() => toMsgs([user('u', [pdf])]), { code: 'INVALID_INPUT_ERROR', message: 'Content of type "document" cannot be used here.', expose: true })
    t.throws(() => toMsgs([user('u', [handle]), { id: 'a', role: 'assistant', content: 'x' }]), { code: 'INVALID_INPUT_ERROR', message: 'Content of type "image" cannot be used here.' })
  })

  t.test('further up leave a note, or the thread could never go on', async (t) => {
    t.strictSame(toMsgs([user('u', [{ type: 'text', text: 'read' }, pdf]), user('v', 'without it then')]), {
      messages: [
        { id: 'u', role: 'USER', content: [{ type: 'text', text: 'read' }, { type: 'text', text: '[Attachment of type document that cannot be read here]' }] },
        { id: 'v', role: 'USER', content: [{ type: 'text', text: 'without it then' }] }
      ],
      skipped: []
    })
  })

  t.test('are skipped with a note where that is asked for, and named', async (t) => {
    const { messages, skipped } = toMsgs([user('u', [{ type: 'text', text: 'read' }, pdf, handle])], { unsupportedContent: 'skip' })
    t.equal(messages[0]?.content.length, 3)
    t.strictSame(skipped, [{ messageId: 'u', partType: 'document', index: 1 }, { messageId: 'u', partType: 'image', index: 2 }])
  })

  t.test('go to an agent that takes their type', async (t) => {
    const blocks = (documentTypes: string[]): unknown => convert([user('u', [pdf, { ...pdf, id: 'p', metadata: null as never }])], { documentTypes, unsupportedContent: 'skip' })[0]?.content
    const source = { type: 'url', url: 'https://x/a.pdf', mime_type: 'application/pdf' }
    t.strictSame(blocks(['application/pdf']), [{ type: 'data', source, name: 'a.pdf' }, { type: 'data', source, id: 'p' }])
    t.match(blocks(['text/plain', 'application/*']), [{ type: 'data' }, { type: 'data' }])
    t.match(blocks(['image/*', 'application/json']), [{ type: 'text' }, { type: 'text' }])
    t.throws(() => toMsgs([user('u', [{ type: 'document', source: { type: 'url', value: 'x' } }])], { documentTypes: ['application/*'] }), { code: 'INVALID_INPUT_ERROR' })
  })
})

t.test('getTextContent joins what is text, in a message or its content', async (t) => {
  t.equal(getTextContent(user('u', 'Hi')), 'Hi')
  t.equal(getTextContent(user('u', [{ type: 'text', text: 'a' }, pdf, { type: 'text', text: 'b' }])), 'a\nb')
  t.equal(getTextContent([{ type: 'text', text: 'a' }]), 'a')
  t.equal(getTextContent('plain'), 'plain')
  t.equal(getTextContent(undefined), '')
  t.equal(getTextContent({ id: 'a', role: 'assistant' }), '')
  t.equal(getTextContent({ id: 'p', role: 'activity', activityType: 'PLAN', content: { role: 'user', content: 'x' } }), '')
})

t.test('a call has one result', async (t) => {
  const asking: Message = { id: 'a', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] }
  const tool = (id: string, content = id): Message => ({ id, role: 'tool', toolCallId: 'c', content })
  const speak: Message = { id: 'u', role: 'user', content: 'Go on' }
  const idsOf = (messages: readonly Message[], answers?: ReadonlyMap<string, Msg | undefined>): string[] => toMsgs(messages, { ...answers !== undefined && { answers } }).messages.map(({ id }) => id)
  const stateOf = (messages: readonly Message[], answers?: ReadonlyMap<string, Msg | undefined>): unknown =>
    toMsgs(messages, { ...answers !== undefined && { answers } }).messages.flatMap(({ content }) => content).find(({ type }) => type === 'tool_use')

  t.test('the first, unless this server has said another', async (t) => {
    t.strictSame(idsOf([asking, tool('one'), tool('two')]), ['a', 'one'])
    t.strictSame(idsOf([asking, tool('made-up'), tool('act:c'), speak]), ['a', 'act:c', 'u'])
    t.strictSame(idsOf([asking, tool('act:c'), tool('made-up')]), ['a', 'act:c'])
  })

  t.test('one that says so, once its user has spoken again', async (t) => {
    t.strictSame(idsOf([asking]), ['a'])
    t.strictSame(idsOf([asking, speak]), ['a', 'agui-unanswered-c', 'u'])
    t.strictSame(idsOf([asking, speak, { ...asking, id: 'b', toolCalls: [{ id: 'd', type: 'function', function: { name: 'f', arguments: '{}' } }] }]), ['a', 'agui-unanswered-c', 'u', 'b'])
  })

  t.test('that which was decided, in its place, or at the end where the transcript does not show the call', async (t) => {
    const answer: Msg = { id: 'agui-resume-x', role: 'TOOL', content: [] }
    for (const transcript of [[asking, speak], [asking, tool('made-up'), speak]]) {
      t.strictSame(idsOf(transcript, new Map([['c', answer]])), ['a', 'agui-resume-x', 'u'])
      t.match(stateOf(transcript, new Map([['c', answer]])), { state: 'finished' })
      t.strictSame(idsOf(transcript, new Map([['c', undefined]])), ['a', 'u'])
      t.match(stateOf(transcript, new Map([['c', undefined]])), { state: 'pending' })
    }
    t.strictSame(idsOf([speak], new Map([['c', answer], ['d', undefined]])), ['u', 'agui-resume-x'])
  })
})
