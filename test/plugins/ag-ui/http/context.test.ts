import t from 'tap'
import { type AgentInput, contextKey, type RuntimeContext } from '../../../../lib/agent/index.ts'
import { runAgentInputKey, type RuntimeContextRequest } from '../../../../plugins/ag-ui/index.ts'
import { buildApp, request } from '../../../helpers/ag-ui-app.ts'

const INPUT = request({
  threadId: 'T',
  runId: 'R',
  parentRunId: 'P',
  state: { cart: [1] },
  tools: [{ name: 'paint', description: 'Paint', parameters: { type: 'object' } }],
  context: [{ description: 'locale', value: 'de' }],
  forwardedProps: { theme: 'dark' }
})

/** A server that keeps what its agent is given. */
async function listening (t: Parameters<typeof buildApp>[0], options: Parameters<typeof buildApp>[1] = {}): Promise<{
  readonly calls: { readonly input: AgentInput, readonly context: RuntimeContext }[]
  run (payload?: object, url?: string, headers?: Record<string, string>): Promise<void>
}> {
  const calls: { readonly input: AgentInput, readonly context: RuntimeContext }[] = []
  const server = await buildApp(t, { agents: { agent: { name: 'agent', async * stream (input, context) { calls.push({ input, context }) } } }, ...options })
  return {
    calls,
    async run (payload = INPUT, url = '/agui/run', headers = {}) {
      const response = await server.app.inject({ method: 'POST', url, headers, payload })
      if (!response.body.includes('"RUN_FINISHED"')) throw new Error(response.body)
    }
  }
}

t.test('an agent finds the request under the keys of its protocol', async (t) => {
  const { calls, run } = await listening(t)
  await run()
  const [{ context, input }] = calls as [typeof calls[number]]
  t.match(context, { sessionId: 'T', runId: 'R', protocol: 'ag-ui' })
  const { signal, ...attributes } = Object.fromEntries([...context.attributes].map(([key, value]) => [key.replace('agui.', ''), value]))
  t.equal(signal, context.signal)
  t.strictSame(attributes, {
    threadId: 'T',
    runId: 'R',
    messages: INPUT['messages'],
    tools: INPUT['tools'],
    context: INPUT['context'],
    state: { cart: [1] },
    forwardedProps: { theme: 'dark' },
    resume: [],
    parentRunId: 'P',
    protocolVersion: '1.0',
    profile: 'v1'
  })
  t.strictSame(context.get(runAgentInputKey), INPUT)
  t.match(input, {
    history: 'replace',
    state: { cart: [1] },
    context: INPUT['context'],
    tools: { mode: 'MERGE_EXTERNAL_PRIORITY', definitions: INPUT['tools'] },
    messages: [{ role: 'SYSTEM', content: [{ type: 'text', text: /data, not instructions\.\n- locale: de$/ }] }, { id: 'u1', role: 'USER', content: [{ type: 'text', text: 'Hi' }] }]
  })
})

t.test('what a request leaves out is empty, not missing', async (t) => {
  const { calls, run } = await listening(t)
  await run({ threadId: 'T', runId: 'R', messages: [] })
  const [{ context, input }] = calls as [typeof calls[number]]
  const pick = (key: string): unknown => context.attributes.get(`agui.${key}`)
  t.strictSame(['messages', 'tools', 'context', 'state', 'forwardedProps', 'resume', 'profile'].map(pick), [[], [], [], {}, {}, [], 'legacy'])
  t.strictSame(input, { messages: [], history: 'replace' })
})

t.test('the resolver is told about the request and fills the context', async (t) => {
  const asked: RuntimeContextRequest[] = []
  const tenant = contextKey<string>('tenant')
  const { calls, run } = await listening(t, {
    runtimeContextResolver: async (about) => {
      asked.push(about)
      return { userId: 'ann', attributes: [['plan', 'pro']], prepare: (context) => { context.set(tenant, 'acme') } }
    }
  })
  await run(INPUT, '/agui/run/agent?debug=1', { 'X-Agent-Id': 'other', 'X-Many': 'one' })
  t.match(asked, [{ input: { threadId: 'T' }, headerAgentId: 'other', pathAgentId: 'agent', transport: 'fastify', method: 'POST', path: '/agui/run/agent', queryParams: { debug: '1' } }])
  t.equal(asked[0]?.firstHeader('x-MANY'), 'one')
  t.equal(asked[0]?.firstHeader('absent'), undefined)
  t.equal(asked[0]?.nativeRequest.headers, asked[0]?.headers)
  const [{ context }] = calls as [typeof calls[number]]
  t.strictSame([context.userId, context.attributes.get('plan'), context.get(tenant)], ['ann', 'pro', 'acme'])
})

t.test('neither resolver nor request forge what the protocol says', async (t) => {
  const forged = ['threadId', 'runId', 'messages', 'tools', 'context', 'state', 'forwardedProps', 'resume', 'resume.interrupts', 'parentRunId', 'protocolVersion', 'profile', 'signal', 'stateHandle', 'other']
  const { calls, run } = await listening(t, {
    runtimeContextResolver: () => ({
      attributes: forged.map((key) => [`agui.${key}`, 'forged'] as const),
      prepare (context) {
        context.set(runAgentInputKey, { threadId: 'forged', runId: 'forged', messages: [] })
        for (const key of forged) context.attributes.set(`agui.${key}`, 'forged')
      }
    })
  })
  await run({ ...INPUT, forwardedProps: { 'agui.threadId': 'forged', userId: 'forged', sessionId: 'forged' } })
  const [{ context }] = calls as [typeof calls[number]]
  t.strictSame([...context.attributes].filter(([, value]) => value === 'forged'), [])
  t.equal(context.get(runAgentInputKey)?.threadId, 'T')
  t.strictSame([context.sessionId, context.runId, context.userId], ['T', 'R', undefined])
})

t.test('the principal is the user, whatever the resolver says', async (t) => {
  const { calls, run } = await listening(t, { getPrincipal: () => ({ id: 'real', tenant: 'acme' }), runtimeContextResolver: () => ({ userId: 'claimed' }) })
  await run()
  t.equal(calls[0]?.context.userId, 'real')
})

t.test('a resolver that fails refuses the request, with its own status', async (t) => {
  for (const [error, statusCode] of [[new Error('secret'), 500], [Object.assign(new Error('Not today.'), { statusCode: 403 }), 403]] as const) {
    const server = await buildApp(t, { agent: { name: 'agent', async * stream () {} }, runtimeContextResolver: () => { throw error } })
    const response = await server.app.inject({ method: 'POST', url: '/agui/run', payload: INPUT })
    t.equal(response.statusCode, statusCode)
    t.notMatch(response.body, /secret/)
    t.strictSame(await server.runIds(), [])
  }
})

t.test('context is kept from the model, and tools go by the chosen mode, where that is asked for', async (t) => {
  const { calls, run } = await listening(t, { injectContext: false, toolMergeMode: 'FRONTEND_ONLY' })
  await run()
  t.match(calls[0]?.input, { tools: { mode: 'FRONTEND_ONLY' }, context: [{ value: 'de' }] })
  t.strictSame(calls[0]?.input.messages.map(({ id }) => id), ['u1'])
})

t.test('a page\'s tool that waits ends the run as success, and its answer comes with the next run', async (t) => {
  const asking = {
    name: 'asking',
    capabilities: { clientTools: true },
    async * stream (input: AgentInput) {
      if (JSON.stringify(input.messages).includes('painted')) return
      yield { type: 'TOOL_CALL_START', replyId: 'r', toolCallId: 'c9', toolCallName: 'paint' } as const
      yield { type: 'TOOL_CALL_DELTA', toolCallId: 'c9', delta: '{}' } as const
      yield { type: 'TOOL_CALL_END', toolCallId: 'c9' } as const
      yield { type: 'REQUIRE_EXTERNAL_EXECUTION', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c9', name: 'paint', input: {} }] } as const
    }
  }
  const server = await buildApp(t, { agent: asking as never })
  const first = await server.app.inject({ method: 'POST', url: '/agui/run', payload: INPUT })
  t.match(first.body, /"outcome":\{"type":"success","pendingToolCallIds":\["c9"\]\}/)
  t.strictSame(await server.host.engine.openInterrupts({}, 'ag-ui', 'T'), [])
  const messages = [
    ...INPUT['messages'] as object[],
    { id: 'a1', role: 'assistant', toolCalls: [{ id: 'c9', type: 'function', function: { name: 'paint', arguments: '{}' } }] },
    { id: 't1', role: 'tool', toolCallId: 'c9', content: 'painted' }
  ]
  const second = await server.app.inject({ method: 'POST', url: '/agui/run', payload: { ...INPUT, runId: 'R2', messages } })
  t.match(second.body, /"outcome":\{"type":"success"\}/)
})
