import t from 'tap'
import { parseRunInput, resolveProfile } from '../../../plugins/ag-ui/input.ts'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'

const bare = { threadId: 'th', runId: 'rn', messages: [] }

function accepted (body: unknown): NormalisedInput {
  const parsed = parseRunInput(body)
  if (parsed.kind === 'invalid') throw new Error(JSON.stringify(parsed.issues))
  return parsed.input
}

function refused (body: unknown, maxDepth?: number): readonly { path: string, reason: string }[] {
  const parsed = parseRunInput(body, maxDepth === undefined ? {} : { maxDepth })
  return parsed.kind === 'invalid' ? parsed.issues : []
}

function warned (body: unknown): readonly { path: string, reason: string }[] {
  const parsed = parseRunInput(body)
  return parsed.kind === 'valid' ? parsed.warnings : []
}

t.test('the example of the specification is taken as it is', async (t) => {
  const body = {
    threadId: 'th-7',
    runId: 'rn-1',
    protocolVersion: '1.0',
    messages: [{
      id: 'u1',
      role: 'user',
      content: [{ type: 'text', text: 'What is in this picture?' }, { type: 'image', source: { type: 'url', value: 'https://img.example/cat.png', mimeType: 'image/png' } }]
    }],
    tools: [{ name: 'paint', description: 'Set page colour', parameters: { type: 'object', properties: { c: { type: 'string' } } } }],
    context: [{ description: 'locale', value: 'de' }],
    state: { cart: [] },
    forwardedProps: { agentId: 'vision' }
  }
  t.strictSame(accepted(body), body)
  t.strictSame(warned(body), [])
})

t.test('every kind of message and part is taken', async (t) => {
  const meta = { metadata: { any: null } }
  const messages = [
    { id: '1', role: 'developer', content: 'd', name: 'n', encryptedValue: 'e', ...meta },
    { id: '2', role: 'system', content: 's' },
    { id: '3', role: 'assistant', content: 'a', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{' }, encryptedValue: 'e', ...meta }] },
    { id: '4', role: 'assistant' },
    { id: '5', role: 'tool', toolCallId: 'c', content: [{ type: 'text', text: 't', id: 'p', ...meta }], error: 'failed' },
    { id: '6', role: 'reasoning', content: 'r', subagentRunId: 's' },
    { id: '7', role: 'activity', activityType: 'PLAN', content: { x: null } },
    {
      id: '8',
      role: 'user',
      content: [
        { type: 'audio', source: { type: 'data', value: 'AA', mimeType: 'audio/wav' } },
        { type: 'video', source: { type: 'file', value: 'f', provider: 'p', mimeType: 'video/mp4' } },
        { type: 'document', source: { type: 'url', value: 'u' }, metadata: 'any' }
      ]
    }
  ]
  t.strictSame(accepted({ ...bare, messages }).messages, messages)
})

t.test('lists that are absent are empty, and resume is taken', async (t) => {
  const resume = [{ interruptId: 'i', status: 'resolved', payload: { a: null } }, { interruptId: 'j', status: 'cancelled' }]
  t.strictSame(accepted(bare), { ...bare, tools: [], context: [] })
  t.strictSame(accepted({ ...bare, parentRunId: 'rn-0', resume }), { ...bare, parentRunId: 'rn-0', resume, tools: [], context: [] })
})

t.test('a null where a member is optional counts as absent', async (t) => {
  const body = {
    ...bare,
    protocolVersion: null,
    parentRunId: null,
    state: null,
    tools: null,
    context: null,
    forwardedProps: null,
    resume: [{ interruptId: 'i', status: 'resolved', payload: null, metadata: null }],
    messages: [
      { id: 'a', role: 'assistant', content: null, toolCalls: null, name: null, metadata: null, subagentRunId: null },
      { id: 'u', role: 'user', content: [{ type: 'image', id: null, metadata: null, source: { type: 'url', value: 'u', mimeType: null } }] }
    ]
  }
  t.strictSame(accepted(body), {
    ...bare,
    messages: [{ id: 'a', role: 'assistant' }, { id: 'u', role: 'user', content: [{ type: 'image', source: { type: 'url', value: 'u' } }] }],
    resume: [{ interruptId: 'i', status: 'resolved' }],
    tools: [],
    context: []
  })
})

t.test('nulls and unknown members inside opaque values are kept', async (t) => {
  const opaque = { deep: [null, { x: null, unknown: 1 }] }
  const body = { ...bare, state: opaque, forwardedProps: [opaque, null], resume: [{ interruptId: 'i', status: 'resolved', payload: opaque }], tools: [{ name: 'f', description: 'd', parameters: opaque, metadata: opaque }] }
  t.strictSame(accepted(body), { ...body, context: [] })
  for (const state of [0, '', false, [], 'text']) t.strictSame(accepted({ ...bare, state }).state, state)
})

t.test('unknown members are left out, at every level, and named for the log', async (t) => {
  const body = {
    ...bare,
    extra: 1,
    messages: [{ id: 'u', role: 'user', content: [{ type: 'text', text: 't', cache: true }], createdAt: 1 }],
    tools: [{ name: 'f', description: '', strict: true }]
  }
  t.strictSame(accepted(body), { ...bare, messages: [{ id: 'u', role: 'user', content: [{ type: 'text', text: 't' }] }], tools: [{ name: 'f', description: '' }], context: [] })
  t.strictSame(warned(body).map(({ path }) => path), ['messages[0].content[0].cache', 'messages[0].createdAt', 'tools[0].strict', 'extra'])
  t.equal(warned({ ...bare, ...Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`x${index}`, 1])) }).length, 20)
})

t.test('bad input is refused with the field and the reason', async (t) => {
  const cases: [unknown, string, string][] = [
    [undefined, '(body)', 'must be an object, not undefined'],
    [null, '(body)', 'must be an object, not null'],
    ['text', '(body)', 'must be an object, not string'],
    [[], '(body)', 'must be an object, not an array'],
    [{ ...bare, threadId: undefined }, 'threadId', 'required'],
    [{ ...bare, threadId: null }, 'threadId', 'must be a string, not null'],
    [{ ...bare, threadId: 7 }, 'threadId', 'must be a string, not number'],
    [{ ...bare, threadId: '' }, 'threadId', 'must not be blank'],
    [{ ...bare, runId: ' \t' }, 'runId', 'must not be blank'],
    [{ threadId: 'th', runId: 'rn' }, 'messages', 'required'],
    [{ ...bare, messages: {} }, 'messages', 'must be an array, not object'],
    [{ ...bare, messages: [null] }, 'messages[0]', 'must be an object, not null'],
    [{ ...bare, messages: [{ id: 'x', content: '' }] }, 'messages[0].role', 'must be one of "developer", "system", "user", "assistant", "tool", "reasoning", "activity"'],
    [{ ...bare, messages: [{ id: 'x', role: 'robot', content: '' }] }, 'messages[0].role', 'must be one of "developer", "system", "user", "assistant", "tool", "reasoning", "activity"'],
    [{ ...bare, messages: [{ id: '', role: 'user', content: '' }] }, 'messages[0].id', 'must not be blank'],
    [{ ...bare, messages: [{ id: 'x', role: 'user' }] }, 'messages[0].content', 'required'],
    [{ ...bare, messages: [{ id: 'x', role: 'user', content: null }] }, 'messages[0].content', 'must be a string or an array, not null'],
    [{ ...bare, messages: [{ id: 'x', role: 'assistant', content: [] }] }, 'messages[0].content', 'must be a string, not an array'],
    [{ ...bare, messages: [{ id: 'x', role: 'user', content: [{ type: 'image' }] }] }, 'messages[0].content[0].source', 'required'],
    [{ ...bare, messages: [{ id: 'x', role: 'user', content: [{ type: 'image', source: { type: 'data', value: 'x' } }] }] }, 'messages[0].content[0].source.mimeType', 'required'],
    [{ ...bare, messages: [{ id: 'x', role: 'user', content: [{ type: 'image', source: { type: 'ftp' } }] }] }, 'messages[0].content[0].source.type', 'must be one of "data", "url", "file"'],
    [{ ...bare, messages: [{ id: 'x', role: 'assistant', toolCalls: [{ id: 'c', type: 'tool', function: { name: 'f', arguments: '' } }] }] }, 'messages[0].toolCalls[0].type', 'must be "function", not string'],
    [{ ...bare, messages: [{ id: 'x', role: 'activity', activityType: 'P', content: 'x' }] }, 'messages[0].content', 'must be an object, not string'],
    [{ ...bare, resume: [{ interruptId: 'i', status: 'maybe' }] }, 'resume[0].status', 'must be "resolved" or "cancelled", not string'],
    [{ ...bare, resume: [{ interruptId: ' ', status: 'resolved' }] }, 'resume[0].interruptId', 'must not be blank'],
    [{ ...bare, context: [{ description: 'd', value: {} }] }, 'context[0].value', 'must be a string, not object'],
    [{ ...bare, tools: [{ description: 'd' }] }, 'tools[0].name', 'required'],
    [{ ...bare, tools: ['f'] }, 'tools[0]', 'must be an object, not string']
  ]
  for (const [body, path, reason] of cases) t.strictSame(refused(body), [{ path, reason }])
})

t.test('all that is wrong is told, up to a limit, and no value is repeated', async (t) => {
  const secret = 'hunter2-secret'
  const issues = refused({ threadId: [secret], runId: { secret }, messages: Array.from({ length: 100 }, () => secret), tools: secret })
  t.equal(issues.length, 20)
  t.notMatch(JSON.stringify(issues), secret)
})

t.test('what is nested too deep is refused, in opaque values too', async (t) => {
  const nested = (depth: number): unknown => Array.from({ length: depth }).reduce<unknown>((inner) => ({ inner }), 1)
  t.strictSame(refused({ ...bare, state: nested(100) }), [{ path: 'state', reason: 'nested deeper than 64 levels' }])
  t.strictSame(refused({ ...bare, state: nested(20) }, 10), [{ path: 'state', reason: 'nested deeper than 10 levels' }])
  t.strictSame(refused({ ...bare, state: [[[[nested(7)]]]] }, 10), [{ path: 'state', reason: 'nested deeper than 10 levels' }])
  t.strictSame(refused({ ...bare, state: nested(9) }, 10), [])
  t.strictSame(refused({ ...bare, forwardedProps: nested(500_000) }), [{ path: 'forwardedProps', reason: 'nested deeper than 64 levels' }])
})

t.test('keys that reach prototypes are refused in opaque values and left out elsewhere', async (t) => {
  const evil = '{"threadId":"th","runId":"rn","messages":[],"__proto__":{"polluted":1}'
  t.strictSame(accepted(JSON.parse(`${evil}}`)), { ...bare, tools: [], context: [] })
  t.equal(Object.getPrototypeOf(accepted(JSON.parse(`${evil}}`))), Object.prototype)
  for (const inside of ['{"__proto__":{}}', '[{"a":{"__proto__":1}}]', '{"constructor":{"prototype":{}}}']) {
    t.strictSame(refused(JSON.parse(`${evil},"state":${inside}}`)), [{ path: 'state', reason: 'holds a key that is not accepted' }])
  }
  t.strictSame(accepted(JSON.parse(`${evil},"state":{"constructor":"any"}}`)).state, { constructor: 'any' })
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
})

t.test('roles are read in any case', async (t) => {
  t.strictSame(accepted({ ...bare, messages: [{ id: 'u', role: 'USER', content: 'x' }] }).messages, [{ id: 'u', role: 'user', content: 'x' }])
})

t.test('legacy binary parts are upgraded', async (t) => {
  const upgraded = (parts: unknown[]): unknown => accepted({ ...bare, messages: [{ id: 'u', role: 'user', content: parts }] }).messages[0]?.content

  t.test('to the part of their media type, from wherever their bytes are', async (t) => {
    t.strictSame(upgraded([
      { type: 'binary', mimeType: 'image/png', data: 'AAAA', url: 'ignored', filename: 'a.png' },
      { type: 'binary', mimeType: 'audio/wav', url: 'https://x/a' },
      { type: 'binary', mimeType: 'VIDEO/mp4', id: 'file-1' },
      { type: 'binary', mimeType: 'application/pdf', data: 'AAAA' },
      { type: 'binary', url: 'https://x/b' },
      { type: 'binary', data: 'AAAA' },
      { type: 'binary', id: 'file-2' }
    ]), [
      { type: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' }, metadata: { filename: 'a.png' } },
      { type: 'audio', source: { type: 'url', value: 'https://x/a', mimeType: 'audio/wav' } },
      { type: 'video', source: { type: 'file', value: 'file-1', mimeType: 'VIDEO/mp4' } },
      { type: 'document', source: { type: 'data', value: 'AAAA', mimeType: 'application/pdf' } },
      { type: 'document', source: { type: 'url', value: 'https://x/b' } },
      { type: 'document', source: { type: 'data', value: 'AAAA', mimeType: 'application/octet-stream' } },
      { type: 'document', source: { type: 'file', value: 'file-2' } }
    ])
  })

  t.test('and dropped where the same attachment is there in today\'s spelling', async (t) => {
    const modern = { type: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' }, metadata: { filename: 'a.png' } }
    t.strictSame(upgraded([{ type: 'binary', mimeType: 'image/png', data: 'AAAA', filename: 'a.png' }, modern, { type: 'text', text: 't' }]), [modern, { type: 'text', text: 't' }])
    t.equal((upgraded([{ type: 'binary', mimeType: 'image/png', data: 'BBBB' }, modern]) as unknown[]).length, 2)
  })

  t.test('with a word in the log', async (t) => {
    t.strictSame(warned({ ...bare, messages: [{ id: 'u', role: 'user', content: [{ type: 'binary', mimeType: 'image/png', data: 'x' }] }] }), [
      { path: 'messages[0].content', reason: 'legacy binary part, upgraded' }
    ])
  })

  t.test('and refused where they say nothing of their bytes', async (t) => {
    t.strictSame(refused({ ...bare, messages: [{ id: 'u', role: 'user', content: [{ type: 'binary', mimeType: 'image/png' }] }] }), [
      { path: 'messages[0].content[0].source.value', reason: 'required' }
    ])
  })
})

t.test('tools that no model could be given are left out', async (t) => {
  const body = {
    ...bare,
    tools: [
      { name: 'f' }, { name: 'g', description: null }, { name: 'f', description: 'again' }, { name: '__plan', description: '' }, { name: ' ', description: '' },
      { name: 'h', description: '', parameters: 'string' }
    ]
  }
  t.strictSame(accepted(body).tools, [{ name: 'f', description: '' }, { name: 'g', description: '' }])
  t.strictSame(warned(body), [
    { path: 'tools[2]', reason: 'left out: another tool has its name' },
    { path: 'tools[3]', reason: 'left out: its name is reserved' },
    { path: 'tools[4]', reason: 'left out: its name is blank' },
    { path: 'tools[5]', reason: 'left out: its parameters are no schema object' }
  ])
})

t.test('the body itself is never changed', async (t) => {
  const body = { ...bare, state: null, messages: [{ id: 'u', role: 'USER', content: [{ type: 'binary', mimeType: 'image/png', data: 'x' }] }], tools: [{ name: 'f' }] }
  const before = JSON.stringify(body)
  parseRunInput(body)
  t.equal(JSON.stringify(body), before)
})

t.test('the stream\'s shape follows the client\'s version', async (t) => {
  const of = (version: string | undefined, option?: 'auto' | 'legacy' | 'v1'): unknown[] => {
    const { profile, supported } = resolveProfile(version, option)
    return [profile, supported]
  }
  for (const version of ['1.0', '1', '1.7', '1.0.3']) t.strictSame(of(version), ['v1', true], version)
  for (const version of [undefined, '', 'latest', '0.0.59', 'v1', '1.x', ' 1.0', '-1', '1.']) t.strictSame(of(version), ['legacy', true], String(version))
  for (const version of ['2.0', '11']) t.strictSame(of(version), ['v1', false], version)
  t.strictSame(of(undefined, 'v1'), ['v1', true])
  t.strictSame(of('1.0', 'legacy'), ['legacy', true])
})
