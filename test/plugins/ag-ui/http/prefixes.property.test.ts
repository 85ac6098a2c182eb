import fc from 'fast-check'
import Fastify, { type FastifyInstance, type InjectOptions } from 'fastify'
import t from 'tap'
import { type Agent } from '../../../../lib/agent/index.ts'
import { agUi, type AgUiOptions } from '../../../../plugins/ag-ui/index.ts'
import { agents } from '../../../../plugins/agents/index.ts'
import { eventStream } from '../../../../plugins/event-stream/index.ts'
import { request } from '../../../helpers/ag-ui-app.ts'

const PREFIXES = ['/agui', '/a', '/a/b', '/'] as const

/** One registration of the plugin. */
interface Mounted {
  readonly prefix: string
  readonly cors: 'usual' | 'off' | 'one'
  readonly hasPaths: boolean
  readonly hasUsers: boolean
}

/** A request of somebody to one of the prefixes. */
interface Call {
  readonly at: number
  readonly kind: 'run' | 'runNamed' | 'runUnknown' | 'connect' | 'stop' | 'nothing' | 'get' | 'head' | 'broken' | 'text' | 'preflight'
  readonly user: string | undefined
  /** Whose thread: the prefix's own, another one's, or one that never was. */
  readonly thread: 'own' | 'other' | 'none'
}

const mounted: fc.Arbitrary<Mounted> = fc.record({
  prefix: fc.constantFrom(...PREFIXES), cors: fc.constantFrom('usual', 'off', 'one'), hasPaths: fc.boolean(), hasUsers: fc.boolean()
})
const call: fc.Arbitrary<Call> = fc.record({
  at: fc.nat(2),
  kind: fc.constantFrom('run', 'run', 'runNamed', 'runUnknown', 'connect', 'connect', 'stop', 'stop', 'nothing', 'get', 'head', 'broken', 'text', 'preflight'),
  user: fc.constantFrom('ann', 'bob', undefined),
  thread: fc.constantFrom('own', 'other', 'none')
})

const named = (name: string): Agent => ({ name, async * stream () { yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', blockId: 'b', delta: name } } })

function optionsOf ({ prefix, cors, hasPaths, hasUsers }: Mounted): AgUiOptions {
  return {
    prefix,
    agents: { [`of ${prefix}`]: named(`of ${prefix}`) },
    enablePathRouting: hasPaths,
    ...cors !== 'usual' && { cors: cors === 'off' ? false : { origin: 'https://one.example' } },
    ...hasUsers && {
      getPrincipal: ({ headers }) => {
        const user = headers['x-user']
        return typeof user === 'string' ? { id: user } : undefined as never
      }
    }
  }
}

/** A host of its own kind: its errors, its 404, its route, and the plugins in this order. */
async function hostOf (registrations: readonly Mounted[], isHosted: boolean): Promise<FastifyInstance> {
  const app = Fastify()
  app.setNotFoundHandler((_request, reply) => reply.code(404).send('host: nothing here'))
  app.setErrorHandler((_error, _request, reply) => reply.code(500).send('host: broken'))
  app.get('/host', () => 'host')
  app.post('/host/broken', () => { throw new Error('of the host') })
  if (isHosted) await app.register(agents, { agents: { 'of the host': named('of the host') } })
  for (const [index, one] of registrations.entries()) {
    await app.register(agUi, optionsOf(one))
    if (index === 0 && isHosted) await app.register(eventStream)
  }
  // Whoever comes last sees what the hosts have decorated, and nothing of the protocols.
  await app.register(async (sibling) => {
    sibling.get('/sibling', (request, reply) => ({ agents: sibling.hasDecorator('agents'), bus: sibling.hasDecorator('bus'), stream: 'stream' in reply, cors: sibling.hasRequestDecorator('corsPreflightEnabled') }))
  })
  return app
}

function injectionOf ({ kind, user, thread }: Call, { prefix }: Mounted, other: string, nth: number): InjectOptions {
  const base = prefix === '/' ? '' : prefix
  const headers = { ...user !== undefined && { 'x-user': user }, origin: 'https://one.example' }
  const threadId = thread === 'own' ? `thread ${prefix}` : thread === 'other' ? `thread ${other}` : 'never was'
  // Whoever starts a run does it in the prefix's own thread.
  const payload = request({ threadId: `thread ${prefix}`, runId: `run-${nth}` })
  switch (kind) {
    case 'run': return { method: 'POST', url: `${base}/run`, headers, payload }
    case 'runNamed': return { method: 'POST', url: `${base}/run/${encodeURIComponent(`of ${prefix}`)}`, headers, payload }
    case 'runUnknown': return { method: 'POST', url: `${base}/run/nobody`, headers, payload }
    case 'connect': return { method: 'POST', url: `${base}/connect`, headers, payload: { threadId } }
    case 'stop': return { method: 'POST', url: `${base}/stop/${encodeURIComponent(threadId)}`, headers }
    case 'nothing': return { method: 'POST', url: `${base}/nothing`, headers, payload: {} }
    case 'get': return { method: 'GET', url: `${base}/run`, headers }
    case 'head': return { method: 'HEAD', url: `${base}/connect`, headers }
    case 'broken': return { method: 'POST', url: `${base}/run`, headers: { ...headers, 'content-type': 'application/json' }, payload: '{"threadId":' }
    case 'text': return { method: 'POST', url: `${base}/run`, headers: { ...headers, 'content-type': 'text/plain' }, payload: 'x' }
    case 'preflight': return { method: 'OPTIONS', url: `${base}/run`, headers: { origin: 'https://one.example', 'access-control-request-method': 'POST' } }
  }
}

/** An answer without what differs between any two servers. */
async function ask (app: FastifyInstance, injection: InjectOptions): Promise<object> {
  const { statusCode, body, headers } = await app.inject(injection)
  const kept = Object.entries(headers).filter(([name]) => name.startsWith('access-control') || name === 'content-type' || name === 'vary')
  return {
    statusCode,
    headers: Object.fromEntries(kept),
    body: body.replace(/^id: \S+\.(\d+)$/gm, 'id: $1').replace(/"timestamp":\d+/g, '"timestamp":0').replace(/[\da-f]{8}-[\da-f-]{27}/g, 'uuid')
  }
}

t.test('a prefix answers as if it were alone, whatever is served beside it, and leaves the host as it was', async (t) => {
  const registrations = fc.uniqueArray(mounted, { minLength: 2, maxLength: 3, selector: ({ prefix }) => prefix })
  await fc.assert(fc.asyncProperty(registrations, fc.boolean(), fc.array(call, { minLength: 4, maxLength: 24, size: 'max' }), async (all, isHosted, calls) => {
    const together = await hostOf(all, isHosted)
    const alone = await Promise.all(all.map((one) => hostOf([one], isHosted)))
    const bare = await hostOf([], isHosted)
    try {
      for (const [nth, one] of calls.entries()) {
        const index = one.at % all.length
        const mine = all[index] as Mounted
        // Registrations that share a host share its threads, as the same principal's.
        const other = isHosted ? 'never was either' : (all[(index + 1) % all.length] as Mounted).prefix
        const injection = injectionOf(one, mine, other, nth)
        // What lies below a prefix is its own to preflight, another prefix there or not.
        const isOverlaid = all.some(({ prefix, cors }) => prefix !== mine.prefix && cors !== 'off' && `${mine.prefix}/`.startsWith(prefix === '/' ? prefix : `${prefix}/`))
        if (one.kind === 'preflight' && isOverlaid) continue
        const [seen, expected] = [await ask(together, injection), await ask(alone[index] as FastifyInstance, injection)]
        if (JSON.stringify(seen) !== JSON.stringify(expected)) throw new Error(`${JSON.stringify(injection)}\nis answered ${JSON.stringify(seen)}\ninstead of  ${JSON.stringify(expected)}`)
      }
      for (const injection of [{ url: '/host' }, { method: 'POST', url: '/host/broken' }, { url: '/elsewhere' }, { method: 'POST', url: '/aguix/run', payload: {} }, { url: '/sibling' }] as const) {
        const [seen, expected] = [await ask(together, injection), await ask(bare, injection)]
        const before = JSON.stringify(expected).replace('"bus":false', `"bus":${isHosted}`).replace('\\"bus\\":false', `\\"bus\\":${isHosted}`).replace('\\"stream\\":false', `\\"stream\\":${isHosted}`)
        if (JSON.stringify(seen) !== before) throw new Error(`${JSON.stringify(injection)} of the host is answered ${JSON.stringify(seen)} instead of ${before}`)
      }
    } finally {
      await Promise.all([together, bare, ...alone].map((app) => app.close()))
    }
  }), { numRuns: Number(process.env.PROPERTY_RUNS ?? 25) })
  t.pass()
})
