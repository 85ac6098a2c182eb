import { resolve } from 'node:path'
import t from 'tap'
import { resolveAgentProtocolOptions } from '../../../plugins/agent-protocol/options.ts'
import { buildTaskApp } from '../../helpers/task-app.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

t.test('the plugin fills in its defaults', async (t) => {
  t.strictSame(resolveAgentProtocolOptions({}), {
    enabled: true,
    agentFactory: undefined,
    customizers: [],
    streamingEnabled: true,
    hitlEnabled: true,
    maxAutoDenyRounds: 5,
    requireInput: false,
    requireAllDecisions: false,
    acceptRules: false,
    onBusySession: 'reject',
    resumePrecedence: 'query',
    trustContextUserId: false,
    exposeErrors: false,
    isReference: false,
    bodyLimit: 20 * 1024 * 1024,
    defaultWaitSeconds: 7_200,
    maxWaitSeconds: 7_200,
    runTimeoutMs: 7_200_000,
    cancelGraceMs: 5_000,
    onDisconnect: 'continue',
    replay: { maxEvents: 256, maxBytes: 4 * 1024 * 1024, ttlMs: 600_000 },
    heartbeatMs: 15_000,
    writeTimeoutMs: 30_000,
    streamTimeoutMs: 10_800_000,
    subscribeGraceMs: 5_000,
    maxSubscribersPerTask: 16,
    maxStreams: 1_000,
    maxConcurrentRuns: 1_000,
    maxQueue: 10_000,
    taskTtlMs: 86_400_000,
    confirmTtlMs: 0,
    onConfirmExpiry: 'deny',
    classic: true,
    stepTimeoutMs: 55_000,
    taskStorePath: undefined,
    workspaceRoot: undefined,
    maxWorkspaceBytes: 256 * 1024 * 1024,
    maxArtifactBytes: 32 * 1024 * 1024
  })
})

t.test('it takes the reference\'s names, and refuses both names at once', async (t) => {
  t.equal(resolveAgentProtocolOptions({ sseReplayBufferSize: 64 }).replay.maxEvents, 64)
  t.equal(resolveAgentProtocolOptions({ replay: { maxEvents: 32 } }).replay.maxEvents, 32)
  t.equal(resolveAgentProtocolOptions({ sseTimeoutMs: 5_000 }).streamTimeoutMs, 5_000)
  t.equal(resolveAgentProtocolOptions({ maxWaitSeconds: 60 }).defaultWaitSeconds, 60, 'a wait without a timeout is no longer than the longest')
  t.strictSame(resolveAgentProtocolOptions({ onDisconnect: { graceMs: 5 } }).onDisconnect, { graceMs: 5 })
  t.equal(resolveAgentProtocolOptions({ compat: 'reference' }).isReference, true)
  for (const value of [true, '', ' '] as const) t.equal(resolveAgentProtocolOptions({ taskStorePath: value }).taskStorePath, resolve('.agentscope/agent-protocol'))
  t.match(resolveAgentProtocolOptions({ taskStorePath: 'x' }), { taskStorePath: resolve('x'), workspaceRoot: resolve('x/workspaces') })
  t.equal(resolveAgentProtocolOptions({ taskStorePath: 'x', workspaceRoot: 'y' }).workspaceRoot, resolve('y'))
  t.throws(() => resolveAgentProtocolOptions({ sseReplayBufferSize: 64, replay: { maxEvents: 32 } }), { code: 'AGT_ERR_OPTION_INVALID', message: /sseReplayBufferSize/ })
  t.throws(() => resolveAgentProtocolOptions({ sseTimeoutMs: 5_000, streamTimeoutMs: 5_000 }), { code: 'AGT_ERR_OPTION_INVALID', message: /sseTimeoutMs/ })
})

t.test('it refuses bad options by their name', async (t) => {
  const bad: Readonly<Record<string, readonly unknown[]>> = {
    enabled: ['yes'],
    agentFactory: ['x', {}],
    customizers: [{}, 'x', [5], [{}], [{ order: 'x', customize: () => {} }]],
    streamingEnabled: [1],
    hitlEnabled: ['on'],
    maxAutoDenyRounds: [0, -1],
    requireInput: ['x'],
    requireAllDecisions: [0],
    acceptRules: ['yes'],
    onBusySession: ['wait'],
    resumePrecedence: ['header'],
    trustContextUserId: ['x'],
    exposeErrors: ['x'],
    compat: ['java', true],
    bodyLimit: [0],
    defaultWaitSeconds: [-1, 7_201],
    maxWaitSeconds: [0],
    runTimeoutMs: [-1],
    cancelGraceMs: [-1],
    onDisconnect: ['stop', {}],
    sseReplayBufferSize: [15],
    heartbeatMs: [10],
    writeTimeoutMs: [10],
    streamTimeoutMs: [10],
    sseTimeoutMs: [10],
    subscribeGraceMs: [-1],
    maxSubscribersPerTask: [0],
    maxStreams: [0],
    maxConcurrentRuns: [0],
    maxQueue: [-1],
    taskTtlMs: [0],
    confirmTtlMs: [-1],
    onConfirmExpiry: ['allow'],
    classic: ['no'],
    stepTimeoutMs: [0],
    taskStorePath: [false, 5],
    workspaceRoot: ['', 5],
    maxWorkspaceBytes: [0],
    maxArtifactBytes: [0]
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) t.throws(() => resolveAgentProtocolOptions({ [name]: value }), { code: 'AGT_ERR_OPTION_INVALID', message: new RegExp(name) }, `${name} ${String(value)}`)
  }
  for (const [name, value] of Object.entries({ maxEvents: 15, maxBytes: 1, ttlMs: -1 })) {
    t.throws(() => resolveAgentProtocolOptions({ replay: { [name]: value } }), { code: 'AGT_ERR_OPTION_INVALID', message: new RegExp(name) }, name)
  }
})

t.test('a plugin that is not enabled registers nothing, and a prefix moves everything', async (t) => {
  const off = await buildTaskApp(t, { agent: new ScriptedAgent(), enabled: false })
  t.equal((await off.ask('GET', '/tasks')).status, 404)
  const app = await buildTaskApp(t, { agent: new ScriptedAgent(), prefix: '/work' })
  t.match(await app.submit('t1'), { status: 200 })
  t.equal((await app.app.inject('/tasks')).statusCode, 404)
  t.match((await app.app.inject('/nowhere')).json(), { error: 'Not Found' }, 'the host\'s other paths keep their own errors')
})
