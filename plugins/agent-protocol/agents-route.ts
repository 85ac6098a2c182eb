import { type FastifyRequest } from 'fastify'
import { callerOf, type TaskScope } from './scope.ts'

/** Agents that tasks can be given to. */
export interface AgentsAnswer {
  readonly agents: readonly { readonly agent_id: string, readonly name: string, readonly description?: string }[]
}

/** `GET /agents`: the registered agents. A factory of the application's may know more. */
export async function handleAgents (scope: TaskScope, request: FastifyRequest): Promise<AgentsAnswer> {
  await callerOf(scope, request)
  const { registry } = scope.host
  return {
    agents: registry.ids.flatMap((id) => {
      const about = registry.describe(id)
      return about === undefined ? [] : [{ agent_id: id, ...about }]
    })
  }
}
