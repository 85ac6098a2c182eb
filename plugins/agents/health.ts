import { Type } from '@sinclair/typebox'
import { type FastifyInstance, type FastifyReply } from 'fastify'
import { withDeadline, type KvKey } from '../../lib/stores/index.ts'
import { type AgentsHost } from './host.ts'

const Status = Type.Object({ status: Type.String() })

/** What readiness reads; nothing writes it. */
const PROBE: KvKey = { owner: {}, space: 'health', key: 'ready' }

/** Where a server says how it is. */
export interface HealthPaths {
  readonly livePath: string
  readonly readyPath: string
}

/**
 * Adds two routes: the process is alive, and it takes work. The second one asks the store, at most one question at a time whoever
 * asks how often, and says 503 from the moment the server begins to close, or drains.
 */
export function addHealthRoutes (app: FastifyInstance, host: AgentsHost, { livePath, readyPath }: HealthPaths, storeTimeoutMs: number): void {
  const { kv } = withDeadline(host.store, storeTimeoutMs)
  let asking: Promise<boolean> | undefined
  function isStoreThere (): Promise<boolean> {
    asking ??= ask().finally(() => { asking = undefined })
    return asking
  }
  async function ask (): Promise<boolean> {
    try {
      await kv.get(PROBE)
      return true
    } catch (error) {
      app.log.warn({ err: error }, 'not ready: the store does not answer')
      return false
    }
  }

  const options = { logLevel: 'warn', schema: { hide: true, response: { 200: Status, 503: Status } } } as const
  const say = (reply: FastifyReply, code: 200 | 503, status: string): FastifyReply => reply.code(code).header('cache-control', 'no-store').send({ status })
  app.get(livePath, options, (_request, reply) => say(reply, 200, 'alive'))
  app.get(readyPath, options, async (_request, reply) => {
    if (host.engine.isClosing) return say(reply, 503, 'closing')
    if (!await isStoreThere()) return say(reply, 503, 'store-unavailable')
    return host.engine.isClosing ? say(reply, 503, 'closing') : say(reply, 200, 'ready')
  })
}
