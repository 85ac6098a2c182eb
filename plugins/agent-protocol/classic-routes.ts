import { type Static } from '@sinclair/typebox'
import { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { isObject } from '../../lib/agent/index.ts'
import { type Run } from '../../lib/runs/index.ts'
import { replyLeft } from '../../lib/sse/index.ts'
import { type ListQuery } from '../../lib/stores/index.ts'
import { listArtifacts, uploadArtifact } from './artifacts.ts'
import { handleDownload } from './artifacts-route.ts'
import {
  ClassicArtifactBody, ClassicArtifactList, ClassicArtifactParams, ClassicErrorBody, ClassicPageQuery, ClassicStepBody, ClassicStepList, ClassicStepParams,
  ClassicStepRequest, ClassicTaskBody, ClassicTaskList, ClassicTaskParams, ClassicTaskRequest
} from './classic-schemas.ts'
import { type ClassicStep, executeStep, type StepRequest, stepsOf } from './classic-steps.ts'
import { additionalInputOf, createHeldTask } from './classic-task.ts'
import { handleError } from './error-handler.ts'
import { TaskError } from './errors.ts'
import { pageOf, paginationOf, readPage } from './page.ts'
import { submissionOf, taskProtocol } from './protocol.ts'
import { type Caller, callerOf, findTask, type TaskScope } from './scope.ts'
import { readUpload } from './upload.ts'
import { type Artifact } from './workspace.ts'

interface OfTask { Params: Static<typeof ClassicTaskParams> }
interface OfStep { Params: Static<typeof ClassicStepParams> }
interface OfArtifact { Params: Static<typeof ClassicArtifactParams> }

const BASE = '/ap/v1/agent/tasks'
/** Artifacts that a task or step shows of itself; the rest is in the listing. */
const MAX_SHOWN = 200
/** Tasks and artifacts that a listing by page numbers counts. */
const MAX_COUNTED = 10_000

const tags = ['agentprotocol.ai v1']
const refusals = { 400: ClassicErrorBody, 401: ClassicErrorBody, 404: ClassicErrorBody, 409: ClassicErrorBody, 413: ClassicErrorBody, 415: ClassicErrorBody, 422: ClassicErrorBody, 429: ClassicErrorBody, 503: ClassicErrorBody }
const params = ClassicTaskParams
const querystring = ClassicPageQuery

/** Adds the routes of agentprotocol.ai v1 over the same tasks (agent-protocol 12). The scope is one of their own: errors have their `message`. */
export function registerClassicRoutes (app: FastifyInstance, scope: TaskScope): void {
  const { bodyLimit, maxArtifactBytes } = scope.options
  app.setErrorHandler(handleClassicError)

  app.post(BASE, { bodyLimit, schema: { summary: 'Create a task', tags, body: ClassicTaskRequest, response: { 200: ClassicTaskBody, ...refusals } } }, async (request) => {
    const { input, additionalInput } = readStepRequest(request.body)
    const caller = await callerOf(scope, request)
    return await taskBody(scope, await createHeldTask(scope, caller, { input, additionalInput }))
  })
  app.get(BASE, { schema: { summary: 'List tasks', tags, querystring, response: { 200: ClassicTaskList, ...refusals } } }, async (request) => {
    const page = readPage(request)
    const { owner } = await callerOf(scope, request)
    const runs = await allRuns(scope, owner)
    const shown = pageOf(runs, page)
    const tasks = await Promise.all(shown.map(async ({ clientId }) => await taskBody(scope, await findTask(scope, owner, clientId))))
    return { tasks, pagination: paginationOf(runs.length, page) }
  })
  app.get<OfTask>(`${BASE}/:task_id`, { schema: { summary: 'Get a task', tags, params, response: { 200: ClassicTaskBody, ...refusals } } }, async (request) => {
    const { owner } = await callerOf(scope, request)
    return await taskBody(scope, await findTask(scope, owner, request.params.task_id))
  })
  app.get<OfTask>(`${BASE}/:task_id/steps`, { schema: { summary: 'List a task\'s steps', tags, params, querystring, response: { 200: ClassicStepList, ...refusals } } }, async (request) => {
    const page = readPage(request)
    const { run } = await taskOf(scope, request, request.params.task_id)
    const steps = await stepsOf(scope, run)
    return { steps: pageOf(steps, page).map(stepBody), pagination: paginationOf(steps.length, page) }
  })
  app.post<OfTask>(`${BASE}/:task_id/steps`, { bodyLimit, schema: { summary: 'Execute a task\'s next step', tags, params, body: ClassicStepRequest, response: { 200: ClassicStepBody, ...refusals } } }, async (request, reply) => {
    const step = readStepRequest(request.body ?? {})
    const { run, caller } = await taskOf(scope, request, request.params.task_id)
    const { left, stop } = replyLeft(reply)
    try {
      return stepBody(await executeStep(scope, run, caller, step, request, left))
    } finally {
      stop()
    }
  })
  app.get<OfStep>(`${BASE}/:task_id/steps/:step_id`, { schema: { summary: 'Get a step', tags, params: ClassicStepParams, response: { 200: ClassicStepBody, ...refusals } } }, async (request) => {
    const { run } = await taskOf(scope, request, request.params.task_id)
    const step = (await stepsOf(scope, run)).find(({ step_id: id }) => id === request.params.step_id)
    if (step === undefined) throw new TaskError('task_not_found', 'step not found')
    return stepBody(step)
  })
  app.get<OfTask>(`${BASE}/:task_id/artifacts`, { schema: { summary: 'List a task\'s artifacts', tags, params, querystring, response: { 200: ClassicArtifactList, ...refusals } } }, async (request) => {
    const page = readPage(request)
    const { run } = await taskOf(scope, request, request.params.task_id)
    const { artifacts } = await listArtifacts(scope, run, undefined, MAX_COUNTED)
    return { artifacts: pageOf(artifacts, page).map(artifactBody), pagination: paginationOf(artifacts.length, page) }
  })
  app.post<OfTask>(`${BASE}/:task_id/artifacts`, { bodyLimit: Math.max(bodyLimit, maxArtifactBytes + 65_536), schema: { summary: 'Upload an artifact', tags, params, consumes: ['multipart/form-data'], response: { 200: ClassicArtifactBody, ...refusals } } }, async (request) => {
    const { run } = await taskOf(scope, request, request.params.task_id)
    return artifactBody(await uploadArtifact(scope, run, await readUpload(request, maxArtifactBytes)))
  })
  app.get<OfArtifact>(`${BASE}/:task_id/artifacts/:artifact_id`, { schema: { summary: 'Download an artifact', tags, params: ClassicArtifactParams } },
    (request, reply) => handleDownload(scope, request, reply, request.params.task_id, request.params.artifact_id))
}

async function taskOf (scope: TaskScope, request: FastifyRequest, taskId: string): Promise<{ readonly run: Run, readonly caller: Caller }> {
  const caller = await callerOf(scope, request)
  return { run: await findTask(scope, caller.owner, taskId), caller }
}

async function allRuns ({ host }: TaskScope, owner: Caller['owner']): Promise<{ readonly clientId: string }[]> {
  const found: { readonly clientId: string }[] = []
  let cursor: string | undefined
  do {
    const query: ListQuery = { protocol: taskProtocol.name, limit: MAX_SHOWN, ...cursor !== undefined && { cursor } }
    const page = await host.engine.list(owner, query)
    found.push(...page.runs)
    cursor = page.cursor
  } while (cursor !== undefined && found.length < MAX_COUNTED)
  return found
}

async function taskBody (scope: TaskScope, run: Run): Promise<Static<typeof ClassicTaskBody>> {
  const { artifacts } = await listArtifacts(scope, run, undefined, MAX_SHOWN)
  return { task_id: run.record.clientId, input: submissionOf(run.record).input, additional_input: additionalInputOf(run), artifacts: artifacts.map(artifactBody) }
}

function stepBody (step: ClassicStep): Record<string, unknown> {
  return { ...step, artifacts: [] }
}

function artifactBody ({ artifact_id: id, agent_created: byAgent, path, created_at: at }: Artifact): Static<typeof ClassicArtifactBody> {
  const parts = path.split('/')
  const name = parts.pop() ?? path
  return { artifact_id: id, agent_created: byAgent, file_name: name, relative_path: parts.length === 0 ? null : `${parts.join('/')}/`, created_at: at, modified_at: at }
}

function readStepRequest (body: unknown): StepRequest {
  if (!isObject(body)) throw unprocessable('the body is a JSON object')
  const { input, additional_input: additionalInput } = body
  if (input !== undefined && input !== null && typeof input !== 'string') throw unprocessable('input is a text')
  if (additionalInput !== undefined && additionalInput !== null && !isObject(additionalInput)) throw unprocessable('additional_input is an object')
  return { input: input ?? undefined, additionalInput: additionalInput ?? undefined }
}

function unprocessable (message: string): TaskError {
  const error = new TaskError('invalid_body', message)
  error.statusCode = 422
  return error
}

/** The same bodies with the classic's `message` in them. */
function handleClassicError (error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.serializer((body: Record<string, unknown>) => JSON.stringify({ message: body.error, ...body }))
  return handleError(error, request, reply)
}
