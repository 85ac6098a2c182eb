import { type FastifyReply } from 'fastify'
import { createProjection } from './events.ts'
import { frameOf } from './frames.ts'
import { type NormalisedInput } from './schemas.ts'
import { type AgUiScope } from './scope.ts'

/**
 * Refuses a run in its own stream: RUN_STARTED and RUN_ERROR with status 200, as the reference does where the request is well
 * formed but breaks the thread's contract or asks for what the agent cannot take (ag-ui 18.3, 20.5, 21).
 * Nothing was started, so the frames have no ids: there is nothing to come back to.
 */
export function sendRefusal (scope: AgUiScope, reply: FastifyReply, input: NormalisedInput, code: string, message: string): void {
  const frames: string[] = []
  const emit = (data: string): void => { frames.push(frameOf(data)) }
  const projection = createProjection(scope.options.mapping, { input })
  projection.open(emit)
  projection.close({ kind: 'failed', error: { code, message } }, emit)
  scope.hub.open(reply).end(frames.join(''))
}
