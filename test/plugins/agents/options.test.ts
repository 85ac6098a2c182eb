import t from 'tap'
import { type AgentsPluginOptions, resolveAgentsOptions, resolvePluginOptions } from '../../../plugins/agents/options.ts'
import { resolveAgUiOptions } from '../../../plugins/ag-ui/options.ts'

t.test('the agents plugin fills in its defaults', (t) => {
  t.strictSame(resolveAgentsOptions({}), {
    agents: {},
    defaultAgent: undefined,
    store: undefined,
    getPrincipal: undefined,
    leaseMs: 15_000,
    storeTimeoutMs: 2_000,
    shutdownMs: 5_000,
    onShutdown: 'interrupt',
    limits: { maxRuns: undefined, maxStreams: undefined, maxStoredBytes: undefined }
  })
  t.strictSame(resolvePluginOptions({}), { metrics: undefined, tracing: false, health: undefined })
  t.strictSame(resolvePluginOptions({ metrics: { path: '/metrics' }, tracing: true, health: {} }), {
    metrics: { path: '/metrics' }, tracing: true, health: { livePath: '/livez', readyPath: '/readyz' }
  })
  t.strictSame(resolvePluginOptions({ health: { livePath: '/a', readyPath: '/b/c' } }).health, { livePath: '/a', readyPath: '/b/c' })
  t.end()
})

t.test('the agents plugin refuses bad options by their name', (t) => {
  for (const [name, value] of Object.entries({ getPrincipal: 'x', leaseMs: 10, storeTimeoutMs: 1, shutdownMs: -1, onShutdown: 'wait' })) {
    t.throws(() => resolveAgentsOptions({ [name]: value }), { code: 'AGT_ERR_OPTION_INVALID', message: new RegExp(name) }, name)
  }
  for (const name of ['maxRuns', 'maxStreams', 'maxStoredBytes']) {
    for (const value of [0, -1, 1.5, '10', null, Infinity]) {
      t.throws(() => resolveAgentsOptions({ limits: { [name]: value } }), { code: 'AGT_ERR_OPTION_INVALID', message: new RegExp(`limits.${name}`) }, `${name} ${value}`)
    }
  }
  const bad: Readonly<Record<string, readonly unknown[]>> = {
    metrics: [{}, { path: 'metrics' }, { path: '/:id' }, { path: '/a b' }, { path: 1 }],
    tracing: [1, 'yes'],
    health: [{ livePath: 'x' }, { readyPath: '/*' }, { readyPath: null }]
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      t.throws(() => resolvePluginOptions({ [name]: value } as AgentsPluginOptions), { code: 'AGT_ERR_OPTION_INVALID', message: new RegExp(name) }, `${name} ${JSON.stringify(value)}`)
    }
  }
  t.end()
})

t.test('AG-UI fills in its defaults', (t) => {
  const { mapping, cors, ...rest } = resolveAgUiOptions({})
  t.strictSame(rest, {
    base: '/agui',
    agentIdHeader: 'x-agent-id',
    enablePathRouting: true,
    bodyLimit: 20 * 1024 * 1024,
    maxDepth: 64,
    onDisconnect: 'interrupt',
    runTimeoutMs: 600_000,
    cancelGraceMs: 5_000,
    heartbeatMs: 15_000,
    writeTimeoutMs: 30_000,
    streamTimeoutMs: 0,
    replay: { maxEvents: 5_000, maxBytes: 4 * 1024 * 1024, ttlMs: 600_000 },
    concurrency: 'reject',
    conflictStatus: 200,
    interruptTtlMs: 0,
    lenientUnknown: false,
    strictResponseSchema: false,
    strictProtocolVersion: false,
    toolMergeMode: 'MERGE_EXTERNAL_PRIORITY',
    injectContext: true,
    runtimeContextResolver: undefined
  })
  t.match(cors, { origin: '*' })
  t.ok(Object.isFrozen(mapping))
  t.equal(resolveAgUiOptions({ prefix: '/x' }).base, '', 'Fastify has put the plugin under its prefix already')
  t.end()
})

t.test('AG-UI takes the other names of an option, and refuses both at once', (t) => {
  t.equal(resolveAgUiOptions({ interruptOnDisconnect: false }).onDisconnect, 'continue')
  t.equal(resolveAgUiOptions({ interruptOnDisconnect: true }).onDisconnect, 'interrupt')
  t.strictSame(resolveAgUiOptions({ onDisconnect: { graceMs: 5 } }).onDisconnect, { graceMs: 5 })
  t.throws(() => resolveAgUiOptions({ onDisconnect: 'continue', interruptOnDisconnect: false }), { code: 'AGT_ERR_OPTION_INVALID' })
  t.end()
})

t.test('AG-UI refuses bad options by their name and value', (t) => {
  const bad: Readonly<Record<string, readonly unknown[]>> = {
    agentIdHeader: ['', 'x y', 'x:y', 'ü', 'a\r\nb'],
    enablePathRouting: ['yes', 1],
    bodyLimit: [0, -1, 1.5, '1mb', NaN, Infinity],
    maxDepth: [1, 10_000, 'deep'],
    onDisconnect: ['stop', {}, { graceMs: 0 }, { graceMs: 'x' }, true, null],
    interruptOnDisconnect: ['no'],
    runTimeoutMs: [-1, 0.5, '10s', NaN],
    cancelGraceMs: [-1, 'x'],
    heartbeatMs: [1, 999, -1, '15s'],
    writeTimeoutMs: [0, 10],
    streamTimeoutMs: [10],
    replay: [{ maxEvents: 0 }, { maxBytes: 1 }, { ttlMs: -1 }],
    concurrency: ['parallel'],
    conflictStatus: [400, '409'],
    interruptTtlMs: [-1, 0.5, '1h'],
    lenientUnknown: ['yes', 1],
    strictResponseSchema: [1],
    strictProtocolVersion: [1],
    toolMergeMode: ['BOTH', ''],
    injectContext: ['x'],
    runtimeContextResolver: [{}, 'x'],
    enableReasoning: ['x'],
    profile: ['v2'],
    mapExtras: ['all']
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) t.throws(() => resolveAgUiOptions({ [name]: value }), { code: 'AGT_ERR_OPTION_INVALID' }, `${name}: ${JSON.stringify(value)}`)
  }
  t.end()
})
