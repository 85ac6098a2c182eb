import { type AddressInfo } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { parsePlan, type RunPlan } from './pace.ts'

/** Fastify as the peers on it get it: no logger, defaults otherwise. */
export function createApp (): FastifyInstance {
  return Fastify()
}

/** Listens on a free port of loopback. */
export async function listenApp (app: FastifyInstance): Promise<number> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port
}

/** The plan in a run's query. */
export function planOf (request: FastifyRequest): RunPlan {
  return parsePlan(new URL(request.url, 'http://localhost').searchParams)
}
