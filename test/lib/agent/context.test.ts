import t from 'tap'
import {
  AgentError, contextKey, createPermissions, createRuntimeContext, deriveContext, isGenerateReason, isTimestamp, newId, type PermissionRule, RunInterrupted, toAgentError, toJson, timestamp
} from '../../../lib/agent/index.ts'

t.test('a context has what it was given, and defaults', async (t) => {
  const { signal } = new AbortController()
  const context = createRuntimeContext({ sessionId: 's', userId: 'u', runId: 'r', protocol: 'a2a', signal, attributes: [['a', 1]], denyRules: [{ tool_name: 'x', behavior: 'deny' }] })
  t.match(context, { sessionId: 's', userId: 'u', runId: 'r', protocol: 'a2a', attributes: new Map([['a', 1]]), denyRules: [{ tool_name: 'x' }] })
  t.equal(context.signal, signal)
  const bare = createRuntimeContext({ sessionId: 's' })
  t.match(bare, { protocol: 'none', runId: /^[0-9a-f-]{36}$/, denyRules: [] })
  t.notOk('userId' in bare)
  t.equal(bare.signal.aborted, false)
})

t.test('typed values are found by their key, not by its name', async (t) => {
  const key = contextKey<{ plan: string }>('tenant')
  const other = contextKey<number>('tenant')
  const context = createRuntimeContext({ sessionId: 's' })
  context.set(key, { plan: 'free' })
  t.strictSame([context.get(key), context.get(other)], [{ plan: 'free' }, undefined])
  context.set(key, undefined)
  t.equal(context.get(key), undefined)
})

t.test('a derived context shares values and attributes', async (t) => {
  const key = contextKey<number>('n')
  const context = createRuntimeContext({ sessionId: 's', userId: 'u', runId: 'r' })
  const { signal } = new AbortController()
  const child = deriveContext(context, { signal, sessionId: 's2', runId: 'r2' })
  child.set(key, 1)
  child.attributes.set('a', 1)
  t.strictSame([context.get(key), child.get(key), context.attributes.get('a')], [1, 1, 1])
  t.match(child, { sessionId: 's2', runId: 'r2', userId: 'u', protocol: 'none' })
  t.equal(child.signal, signal)
  const same = deriveContext(createRuntimeContext({ sessionId: 's', runId: 'r' }), { signal })
  t.match(same, { sessionId: 's', runId: 'r' })
  t.notOk('userId' in same)
})

t.test('deny rules: names, globs and contents', async (t) => {
  const isDenied = (rule: Partial<PermissionRule>, name: string, input: object = {}): boolean =>
    createPermissions([{ tool_name: 'x', behavior: 'deny', ...rule }]).check({ name, input: input as never }).behavior === 'deny'
  t.equal(isDenied({ tool_name: 'shell' }, 'shell', { a: 1 }), true)
  t.equal(isDenied({ tool_name: 'shell' }, 'shells'), false)
  t.equal(isDenied({ tool_name: 'shell', rule_content: '  ' }, 'shell'), true)
  for (const [pattern, name, expected] of [['*', 'any', true], ['file_*', 'file_read', true], ['file_*', 'file_', true], ['*_read', 'file_read', true], ['f*_r*d', 'file_read', true], ['f*_r*d', 'file_readx', false], ['a*a', 'a', false], ['a*x*a', 'a_a', false], ['ab*ba', 'aba', false], ['', '', true]] as const) {
    t.equal(isDenied({ tool_name: pattern }, name), expected, `${pattern} on ${name}`)
  }
  const shell = (content: string, cmd: unknown): boolean => isDenied({ tool_name: 'shell', rule_content: content }, 'shell', { cmd })
  t.strictSame(['rm', 'rm -rf /', 'rmdir', 'sudo rm', 'rm:x', ' rm -rf / '].map((cmd) => shell('rm:*', cmd)), [true, true, false, false, true, true])
  t.strictSame(['/etc/passwd', '/etcetera', '/ETC/x'].map((cmd) => shell('/etc/*', cmd)), [true, false, false])
  t.equal(shell('secret', ['a', { deep: ['secret'] }]), true)
  t.equal(shell('*secret*', { deep: { secret: 1 } }), true, 'keys and numbers are found in the JSON text')
  t.equal(shell('{"cmd":5}', 5), true)
  t.equal(shell('x', [undefined, null, true, 'x']), true)
  t.equal(shell('x', null), false)
})

t.test('the matching rule is named, and rules that do not deny say nothing', async (t) => {
  const rules: PermissionRule[] = [{ tool_name: 'x', behavior: 'allow' }, { tool_name: 'x', behavior: 'ask' }, { tool_name: 'y', behavior: 'deny' }, { tool_name: 'y', behavior: 'deny', source: 'later' }]
  const permissions = createPermissions(rules)
  t.strictSame(permissions.check({ name: 'x', input: {} }), { behavior: 'allow' })
  t.strictSame(permissions.check({ name: 'y', input: {} }), { behavior: 'deny', rule: rules[2] })
})

t.test('a long pattern on a long text takes no time worth naming', async (t) => {
  const permissions = createPermissions([{ tool_name: `${'*a'.repeat(500)}b`, behavior: 'deny' }])
  t.equal(permissions.check({ name: 'a'.repeat(50_000), input: {} }).behavior, 'allow')
})

t.test('an interruption looks like an abort', async (t) => {
  const msg = { id: 'm', role: 'USER', content: [] } as const
  const error = new RunInterrupted('tool', { message: 'Enough', msg: { ...msg, content: [] }, cause: 5 })
  t.match(error, { name: 'AbortError', source: 'tool', message: 'Enough', msg, cause: 5 })
  t.match(new RunInterrupted('user'), { name: 'AbortError', message: 'The run was interrupted by user.', msg: undefined })
  t.notOk('cause' in new RunInterrupted('user'))
})

t.test('an agent\'s error tells clients its message only if it may be shown', async (t) => {
  const hidden = new AgentError({ code: 'db', message: 'password x', cause: 1 })
  t.match(hidden, { name: 'AgentError', code: 'db', expose: false, publicMessage: 'The agent failed.', cause: 1, statusCode: undefined })
  t.match(new AgentError({ code: 'quota', message: 'Later', expose: true, retryable: true, statusCode: 429 }), { publicMessage: 'Later', retryable: true, statusCode: 429 })
  t.equal(toAgentError(hidden), hidden)
  const error = new TypeError('broken')
  t.match(toAgentError(error), { code: 'internal_error', message: 'broken', cause: error, publicMessage: 'The agent failed.' })
  t.match(toAgentError(undefined), { code: 'internal_error', message: 'The agent threw no error object' })
})

t.test('plain JSON is what JSON.stringify would keep', async (t) => {
  const value = { a: [1, undefined, () => 1, NaN], b: undefined, c: Symbol('c'), d: new Date(0), e: 10n, f: { toJSON: () => ({ g: 1 }) }, h: 'x\ud83d', 'k\ude00': 1, n: null, t: true }
  t.strictSame(toJson(value), { a: [1, null, null, null], d: '1970-01-01T00:00:00.000Z', e: '10', f: { g: 1 }, h: 'x\ufffd', 'k\ufffd': 1, n: null, t: true })
  t.equal(toJson(undefined), undefined)
  const cyclic: unknown[] = []
  cyclic.push(cyclic)
  t.throws(() => toJson(cyclic), TypeError)
})

t.test('ids are 32 hex digits and differ, also beyond a block of them', async (t) => {
  const ids = new Set(Array.from({ length: 10_000 }, newId))
  t.equal(ids.size, 10_000)
  t.ok([...ids].every((id) => /^[0-9a-f]{32}$/.test(id)))
})

t.test('times are instants, reasons are known', async (t) => {
  t.ok(isTimestamp(timestamp()))
  t.strictSame(['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.123456789Z', '2026-01-01', '2026-01-01T00:00:00+01:00', 5].map(isTimestamp), [true, true, false, false, false])
  t.strictSame(['MODEL_STOP', 'model_stop', 5].map(isGenerateReason), [true, false, false])
})
