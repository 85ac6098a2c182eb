import { type FastifyRequest } from 'fastify'
import { ownerOf } from '../agents/index.ts'
import { type AgUiScope } from './scope.ts'

/**
 * `POST /stop/:threadId`: stops the thread's active run, with nobody connected to it just as well. Stopping again, an unknown
 * thread and somebody else's all answer alike: there was nothing to stop.
 */
export async function handleStop (scope: AgUiScope, request: FastifyRequest, threadId: string, runId: string | undefined): Promise<{ threadId: string, stopped: boolean }> {
  const owner = ownerOf(await scope.host.principalOf(request))
  const outcome = await scope.host.engine.stopSession(owner, scope.protocol.name, threadId, runId)
  return { threadId, stopped: outcome === 'stopped' }
}
