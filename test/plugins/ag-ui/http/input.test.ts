import t, { type Test } from 'tap'
import { type Agent } from '../../../../lib/agent/index.ts'
import { buildApp, type AppOptions, request } from '../../../helpers/ag-ui-app.ts'

type Built = Awaited<ReturnType<typeof buildApp>>
interface Answer { readonly status: number, readonly type: string, readonly body: unknown, readonly text: string }

/** A server whose agents must never be asked. */
async function untouched (t: Test, options: AppOptions = {}): Promise<{ readonly built: Built, post (path: string, payload: string | Buffer | undefined, headers?: Record<string, string>): Promise<Answer>, check (): Promise<void> }> {
  let streams = 0
  let made = 0
  const shared: Agent = { name: 'shared', async * stream () { streams++ } }
  const built = await buildApp(t, { agents: { shared, made: () => { made++; return shared } }, ...options })
  return {
    built,
    async post (path, payload, headers = { 'content-type': 'application/json' }) {
      const response = await built.app.inject({ method: 'POST', url: path, headers, ...payload !== undefined && { payload } })
      const { statusCode, body } = response
      return { status: statusCode, type: String(response.headers['content-type']), body: JSON.parse(body), text: body }
    },
    async check () {
      t.strictSame({ streams, made, runs: await built.runIds() }, { streams: 0, made: 0, runs: [] })
      t.strictSame(built.logs.filter(({ level }) => level >= 40), [], 'a client\'s fault is no trouble of the operator\'s')
    }
  }
}

const PATHS = ['/agui/run', '/agui/run/shared', '/agui/connect', '/agui/connect/shared']
const JSON_TYPE = 'application/json; charset=utf-8'

const BODIES: Readonly<Record<string, { readonly payload: string | undefined, readonly status?: number, readonly code: string }>> = {
  'malformed JSON': { payload: '{"threadId":', code: 'INVALID_JSON' },
  'two JSON values': { payload: '{}{}', code: 'INVALID_JSON' },
  'an empty body': { payload: '', code: 'INVALID_JSON' },
  'a blank body': { payload: ' \n', code: 'INVALID_JSON' },
  null: { payload: 'null', code: 'INVALID_INPUT_ERROR' },
  'an array': { payload: '[]', code: 'INVALID_INPUT_ERROR' },
  'a string': { payload: '"threadId"', code: 'INVALID_INPUT_ERROR' },
  'a number': { payload: '17', code: 'INVALID_INPUT_ERROR' },
  'an empty object': { payload: '{}', code: 'INVALID_INPUT_ERROR' },
  'a __proto__ key': { payload: JSON.stringify(request()).replace('{', '{"__proto__":{"isAdmin":true},'), code: 'INVALID_JSON' },
  'a __proto__ key deep inside': { payload: JSON.stringify(request({ state: { a: 1 } })).replace('"a":1', '"a":[{"__proto__":{"x":1}}]'), code: 'INVALID_JSON' },
  'a constructor.prototype key': { payload: JSON.stringify(request()).replace('{', '{"constructor":{"prototype":{"isAdmin":true}},'), code: 'INVALID_JSON' },
  'a body nested too deep': { payload: JSON.stringify(request()).replace('"user"', `"user","metadata":${'{"a":'.repeat(100)}1${'}'.repeat(100)}`), code: 'INVALID_INPUT_ERROR' },
  'a body nested very deep': { payload: `{"threadId":"t","runId":"r","messages":[],"state":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, code: 'INVALID_INPUT_ERROR' }
}

for (const [what, { payload, status = 400, code }] of Object.entries(BODIES)) {
  t.test(`${what} is refused on every path that takes a body, with nothing started`, async (t) => {
    const { post, check } = await untouched(t)
    for (const path of PATHS) {
      // Members that `/connect` does not know are left out unread.
      if (path.startsWith('/agui/connect') && /nested (too|very) deep/.test(what)) continue
      const answer = await post(path, payload)
      t.match(answer, { status, type: JSON_TYPE, body: { error: { code, message: String } } }, path)
      t.notMatch(answer.text, /isAdmin|FST_/)
    }
    await check()
  })
}

const BODY = JSON.stringify(request())
const MEDIA_TYPES: readonly (readonly [type: string | undefined, status: number])[] = [
  ['text/plain', 415], ['text/plain;charset=UTF-8', 415], ['application/x-www-form-urlencoded', 415], ['multipart/form-data; boundary=x', 415],
  ['application/octet-stream', 415], ['text/event-stream', 415], ['nonsense', 415], ['application/jsonx', 415], [undefined, 415]
]

t.test('only application/json is read, so that no page of another origin starts a run unasked', async (t) => {
  const { post, check } = await untouched(t)
  for (const path of [...PATHS, '/agui/stop/thread']) {
    for (const [type, status] of MEDIA_TYPES) {
      // inject() gives a string a type of its own; bytes have none.
      const answer = await post(path, Buffer.from(BODY), type === undefined ? {} : { 'content-type': type })
      t.match(answer, { status, type: JSON_TYPE, body: { error: { code: 'UNSUPPORTED_MEDIA_TYPE' } } }, `${path} ${String(type)}`)
    }
  }
  await check()
})

t.test('a request without a body and without a type is refused as invalid input', async (t) => {
  const { post, check } = await untouched(t)
  for (const path of PATHS) t.match(await post(path, undefined, {}), { status: 400, type: JSON_TYPE, body: { error: { code: 'INVALID_INPUT_ERROR' } } }, path)
  await check()
})

t.test('application/json with a charset is read', async (t) => {
  const { built } = await untouched(t)
  for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;charset=UTF-8']) {
    const response = await built.app.inject({ method: 'POST', url: '/agui/run/nobody', headers: { 'content-type': type }, payload: BODY })
    t.match(response.json(), { error: { code: 'AGENT_NOT_FOUND' } }, type)
  }
})

t.test('a body over bodyLimit is refused with 413, one of exactly that size is read', async (t) => {
  const { post, check } = await untouched(t, { bodyLimit: BODY.length })
  for (const path of PATHS) {
    t.match(await post(path, BODY + ' '), { status: 413, type: JSON_TYPE, body: { error: { code: 'PAYLOAD_TOO_LARGE' } } }, path)
  }
  t.match(await post('/agui/run/nobody', BODY), { status: 404 })
  await check()
})

t.test('five megabytes of media fit by default', async (t) => {
  const { post } = await untouched(t)
  const content = [{ type: 'image', source: { type: 'data', value: 'A'.repeat(5 * 1024 * 1024), mimeType: 'image/png' } }]
  t.match(await post('/agui/run/nobody', JSON.stringify(request({ messages: [{ id: 'u1', role: 'user', content }] }))), { status: 404 })
})

const WRONG: readonly (readonly [path: string, value: unknown])[] = [
  ['threadId', undefined], ['threadId', null], ['threadId', ''], ['threadId', ' \t'], ['threadId', 1], ['threadId', {}], ['threadId', []], ['threadId', true],
  ['runId', undefined], ['runId', null], ['runId', ''], ['runId', '\u00a0'], ['runId', 1], ['runId', ['r']],
  ['messages', undefined], ['messages', null], ['messages', {}], ['messages', 'x'], ['messages', 1],
  ['messages[0]', null], ['messages[0]', 'x'], ['messages[0]', []], ['messages[0]', 1],
  ['messages[0].role', undefined], ['messages[0].role', null], ['messages[0].role', 'function'], ['messages[0].role', 1], ['messages[0].role', '__proto__'],
  ['messages[0].id', undefined], ['messages[0].id', null], ['messages[0].id', ''], ['messages[0].id', 1],
  ['messages[0].content', undefined], ['messages[0].content', null], ['messages[0].content', 1], ['messages[0].content', {}], ['messages[0].content', [null]],
  ['messages[0].content', ['x']], ['messages[0].content', [{ type: 'text' }]], ['messages[0].content', [{ type: 'text', text: 1 }]],
  ['messages[0].content', [{ type: 'poem', text: 'x' }]], ['messages[0].content', [{ type: 'image' }]], ['messages[0].content', [{ type: 'image', source: null }]],
  ['messages[0].content', [{ type: 'image', source: { type: 'data', value: 'x' } }]], ['messages[0].content', [{ type: 'image', source: { type: 'ftp', value: 'x' } }]],
  ['messages[0].content', [{ type: 'image', source: { type: 'url' } }]], ['messages[0].content', [{ type: 'binary', mimeType: 'image/png' }]],
  ['messages[0].name', 1], ['messages[0].metadata', 'x'], ['messages[0].metadata', []], ['messages[0].encryptedValue', 1], ['messages[0].subagentRunId', {}],
  ['protocolVersion', 1], ['protocolVersion', {}], ['parentRunId', 1], ['parentRunId', []],
  ['tools', {}], ['tools', 'x'], ['tools[0]', null], ['tools[0]', 'x'], ['tools[0]', { description: 'd' }], ['tools[0]', { name: 1, description: 'd' }],
  ['tools[0]', { name: 'f', description: 1 }], ['tools[0]', { name: 'f', description: 'd', metadata: 1 }],
  ['context', {}], ['context', 'x'], ['context[0]', null], ['context[0]', { description: 'd' }], ['context[0]', { description: 'd', value: 1 }], ['context[0]', { description: null, value: 'v' }],
  ['resume', {}], ['resume', 'x'], ['resume[0]', null], ['resume[0]', {}], ['resume[0]', { interruptId: '', status: 'resolved' }],
  ['resume[0]', { interruptId: 'i', status: 'maybe' }], ['resume[0]', { interruptId: 'i', status: null }], ['resume[0]', { interruptId: 1, status: 'resolved' }],
  ['resume[0]', { interruptId: 'i', status: 'resolved', metadata: 'x' }]
]

const OTHER_MESSAGES: readonly unknown[] = [
  { id: 'a', role: 'assistant', content: [{ type: 'text', text: 'x' }] }, { id: 'a', role: 'assistant', content: 1 },
  { id: 'a', role: 'assistant', toolCalls: {} }, { id: 'a', role: 'assistant', toolCalls: [null] }, { id: 'a', role: 'assistant', toolCalls: [{}] },
  { id: 'a', role: 'assistant', toolCalls: [{ id: '', type: 'function', function: { name: 'f', arguments: '' } }] },
  { id: 'a', role: 'assistant', toolCalls: [{ id: 'c', type: 'x', function: { name: 'f', arguments: '' } }] },
  { id: 'a', role: 'assistant', toolCalls: [{ id: 'c', type: 'function' }] }, { id: 'a', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: null }] },
  { id: 'a', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: {} } }] },
  { id: 'a', role: 'tool', content: 'x' }, { id: 'a', role: 'tool', toolCallId: 1, content: 'x' }, { id: 'a', role: 'tool', toolCallId: 'c' }, { id: 'a', role: 'tool', toolCallId: 'c', content: null },
  { id: 'a', role: 'tool', toolCallId: 'c', content: 'x', error: 1 },
  { id: 'a', role: 'system' }, { id: 'a', role: 'system', content: [] }, { id: 'a', role: 'developer', content: {} },
  { id: 'a', role: 'reasoning', content: [] }, { id: 'a', role: 'activity', content: {} }, { id: 'a', role: 'activity', activityType: 'x', content: 'y' }
]

t.test('each known field of a wrong type is refused by its name, without its value', async (t) => {
  const { post, check } = await untouched(t)
  for (const [path, value] of WRONG) {
    const body = request({ tools: [{ name: 'f', description: '' }], context: [], resume: [] })
    place(body, path, value === 'x' ? 'SECRET' : value)
    const answer = await post('/agui/run', JSON.stringify(body))
    t.match(answer, { status: 400, type: JSON_TYPE, body: { error: { code: 'INVALID_INPUT_ERROR', message: String, issues: [{ path: String, reason: String }] } } }, `${path} = ${JSON.stringify(value)}`)
    const issues = (answer.body as { error: { issues: { path: string }[] } }).error.issues
    t.ok(issues.every((issue) => issue.path.startsWith(path)), `${path}: ${JSON.stringify(issues)}`)
    t.notMatch(answer.text, /SECRET/)
  }
  for (const message of OTHER_MESSAGES) {
    const answer = await post('/agui/run', JSON.stringify(request({ messages: [message] })))
    t.match(answer, { status: 400, body: { error: { code: 'INVALID_INPUT_ERROR' } } }, JSON.stringify(message))
  }
  await check()
})

t.test('a body full of mistakes does not buy a long answer', async (t) => {
  const { post, check } = await untouched(t)
  const answer = await post('/agui/run', JSON.stringify(request({ messages: Array.from({ length: 50_000 }, () => null) })))
  t.equal(answer.status, 400)
  t.ok(answer.text.length < 5_000, String(answer.text.length))
  await check()
})

t.test('nulls of optional members count as absent, and the echo has none', async (t) => {
  const built = await buildApp(t, { agent: { name: 'quiet', async * stream () {} } })
  const response = await built.app.inject({
    method: 'POST',
    url: '/agui/run',
    payload: {
      threadId: 't',
      runId: 'r',
      protocolVersion: '1.0',
      parentRunId: null,
      state: null,
      forwardedProps: null,
      resume: null,
      tools: [{ name: 'f', description: null, parameters: null, metadata: null }],
      context: null,
      extra: null,
      messages: [
        { id: 'u', role: 'user', content: [{ type: 'text', text: 'x', id: null, metadata: null, extra: 1 }], name: null, metadata: null, encryptedValue: null, subagentRunId: null },
        { id: 'a', role: 'assistant', content: null, toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, encryptedValue: null, metadata: null }] },
        { id: 'b', role: 'assistant', content: 'y', toolCalls: null },
        { id: 't', role: 'tool', toolCallId: 'c', content: 'z', error: null }
      ]
    }
  })
  t.equal(response.statusCode, 200)
  const [started] = response.body.split('\n\n')
  t.strictSame(JSON.parse(started?.split('data: ')[1] ?? ''), {
    type: 'RUN_STARTED',
    threadId: 't',
    runId: 'r',
    protocolVersion: '1.0',
    input: {
      threadId: 't',
      runId: 'r',
      protocolVersion: '1.0',
      tools: [{ name: 'f', description: '' }],
      context: [],
      messages: [
        { id: 'u', role: 'user', content: [{ type: 'text', text: 'x' }] },
        { id: 'a', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
        { id: 'b', role: 'assistant', content: 'y' },
        { id: 't', role: 'tool', toolCallId: 'c', content: 'z' }
      ]
    }
  })
})

t.test('nulls inside opaque values are the caller\'s data and stay', async (t) => {
  const inputs: unknown[] = []
  const built = await buildApp(t, { agent: { name: 'quiet', async * stream (_input, { attributes }) { inputs.push([attributes.get('agui.state'), attributes.get('agui.forwardedProps')]) } } })
  const opaque = { a: null, b: [null], constructor: null, toString: 1 }
  await built.app.inject({ method: 'POST', url: '/agui/run', payload: request({ state: opaque, forwardedProps: opaque }) })
  t.strictSame(inputs, [[opaque, opaque]])
})

t.test('another major version is served as 1.0 with a warning, or refused where that is asked for', async (t) => {
  const payload = request({ protocolVersion: '2.0' })
  const lenient = await buildApp(t, { agent: { name: 'quiet', async * stream () {} } })
  const served = await lenient.app.inject({ method: 'POST', url: '/agui/run', payload })
  t.match(served.body, /"protocolVersion":"1.0","input":\{.*"outcome":\{"type":"success"\}/s)
  t.equal(lenient.logs.filter(({ level }) => level === 40).length, 1)

  const { post, check } = await untouched(t, { strictProtocolVersion: true })
  t.match(await post('/agui/run', JSON.stringify(payload)), { status: 400, body: { error: { code: 'UNSUPPORTED_PROTOCOL_VERSION' } } })
  await check()
  for (const protocolVersion of ['1.7', '1', '0.0.59', 'draft', '']) {
    t.match(await post('/agui/run/nobody', JSON.stringify({ ...payload, protocolVersion })), { status: 404 }, protocolVersion)
  }
})

t.test('a broken body of the stop verb stops nothing', async (t) => {
  const { post, check } = await untouched(t)
  for (const payload of ['{', '[]', '"x"', '17', '{"runId":1}', '{"runId":""}', '{"runId":[]}', '{"runId":{}}', '{"__proto__":{}}']) {
    t.match(await post('/agui/stop/thread', payload), { status: 400, type: JSON_TYPE, body: { error: { code: /^INVALID_/ } } }, payload)
  }
  for (const payload of ['null', '{}', '{"runId":null}', '{"other":1}']) t.match(await post('/agui/stop/thread', payload), { status: 200, body: { threadId: 'thread', stopped: false } }, payload)
  t.match(await post('/agui/stop/thread', undefined, {}), { status: 200 })
  t.match(await post('/agui/stop/%20', undefined, {}), { status: 400, body: { error: { code: 'INVALID_INPUT_ERROR' } } })
  t.match(await post('/agui/stop/__proto__', undefined, {}), { status: 200, body: { threadId: '__proto__', stopped: false } })
  await check()
})

t.test('a document in the newest turn refuses the run in its stream, before the agent is asked', async (t) => {
  const { built, check } = await untouched(t)
  const content = [{ type: 'document', source: { type: 'url', value: 'https://secret.example/a.pdf' } }]
  const response = await built.app.inject({ method: 'POST', url: '/agui/run/shared', payload: request({ messages: [{ id: 'u', role: 'user', content }] }) })
  t.equal(response.statusCode, 200)
  const events = response.body.trim().split('\n\n').map((frame) => JSON.parse(frame.replace(/^data: /, '')))
  t.match(events, [{ type: 'RUN_STARTED', input: { messages: [{ content }] } }, { type: 'RUN_ERROR', code: 'INVALID_INPUT_ERROR', message: String, timestamp: Number }])
  t.equal(events.length, 2)
  t.notMatch(events[1].message, /secret/)
  await check()
})

/** Puts a value at `a[0].b` of a body. */
function place (body: Record<string, unknown>, path: string, value: unknown): void {
  const keys = path.split(/[.[\]]+/).filter((key) => key !== '')
  let target = body as Record<string, unknown>
  for (const key of keys.slice(0, -1)) target = target[key] as Record<string, unknown>
  const last = keys.at(-1) as string
  if (value === undefined) delete target[last]
  else target[last] = value
}
