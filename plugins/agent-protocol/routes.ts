import { type Static, Type } from '@sinclair/typebox'
import { type FastifyInstance, type FastifySchemaCompiler } from 'fastify'
import { handleError } from './error-handler.ts'
import { handleAgents } from './agents-route.ts'
import { handleArtifacts, handleDownload, handleUpload } from './artifacts-route.ts'
import { handleCancel } from './cancel-route.ts'
import { handleDelete } from './delete-route.ts'
import { handleEvents } from './events-route.ts'
import { handleList } from './list-route.ts'
import { handleResume } from './resume-route.ts'
import { handleSnapshot } from './snapshot-route.ts'
import { handleSubmit } from './submit-route.ts'
import { handleWait } from './wait-route.ts'
import {
  AgentList, ArtifactBody, ArtifactList, ArtifactParams, ArtifactQuery, CancelAnswer, ErrorBody, EventsQuery, EventStream, ListQuery, ResumeAnswer, ResumeBody, Snapshot, SubmitAnswer, SubmitBody,
  TaskList, TaskParams, WaitAnswer, WaitQuery
} from './schemas.ts'
import { type TaskScope } from './scope.ts'

interface OfTask { Params: Static<typeof TaskParams> }

interface OfArtifact { Params: Static<typeof ArtifactParams> }

/** What a form adds to the file in it. */
const FORM_BYTES = 64 * 1024
const bytes = { description: 'The bytes.', content: { 'application/octet-stream': { schema: Type.String({ format: 'binary' }) } } }
const tags = ['agent-protocol']
const params = TaskParams
const refusals = {
  400: ErrorBody, 401: ErrorBody, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody, 413: ErrorBody, 415: ErrorBody, 422: ErrorBody, 429: ErrorBody, 503: ErrorBody
}

/** Adds the native routes of one registration, with this protocol's own error bodies. */
export function registerRoutes (app: FastifyInstance, scope: TaskScope): void {
  const { bodyLimit } = scope.options
  prepareScope(app)

  app.post('/tasks', { bodyLimit, schema: { summary: 'Submit a task', tags, body: SubmitBody, response: { 200: SubmitAnswer, ...refusals } } },
    (request) => handleSubmit(scope, request))
  app.get('/tasks', { schema: { summary: 'List tasks', tags, querystring: ListQuery, response: { 200: TaskList, ...refusals } } },
    (request) => handleList(scope, request))
  app.get<OfTask>('/tasks/:taskId', { schema: { summary: 'Look at a task', tags, params, response: { 200: Snapshot, ...refusals } } },
    (request, reply) => handleSnapshot(scope, request, reply, request.params.taskId))
  app.get<OfTask>('/tasks/:taskId/wait', { schema: { summary: 'Wait for a task', tags, params, querystring: WaitQuery, response: { 200: WaitAnswer, ...refusals } } },
    (request, reply) => handleWait(scope, request, reply, request.params.taskId))
  app.post<OfTask>('/tasks/:taskId/cancel', { bodyLimit, schema: { summary: 'Cancel a task', tags, params, response: { 200: CancelAnswer, ...refusals } } },
    (request) => handleCancel(scope, request, request.params.taskId))
  app.get<OfTask>('/tasks/:taskId/events', {
    schema: {
      summary: 'Follow a task',
      tags,
      params,
      querystring: EventsQuery,
      response: {
        200: { description: 'The events.', content: { 'text/event-stream': { schema: EventStream } } },
        204: Type.Null({ description: 'The task is over, and the reader has all of it.' }),
        406: ErrorBody,
        410: ErrorBody,
        ...refusals
      }
    }
  }, (request, reply) => handleEvents(scope, request, reply, request.params.taskId))
  app.post<OfTask>('/tasks/:taskId/resume', { bodyLimit, schema: { summary: 'Answer a task', tags, params, body: ResumeBody, response: { 200: ResumeAnswer, ...refusals } } },
    (request) => handleResume(scope, request, request.params.taskId))
  app.delete<OfTask>('/tasks/:taskId', { schema: { summary: 'Delete a task that is over', tags, params, response: { 204: Type.Null(), ...refusals } } },
    async (request, reply) => {
      await handleDelete(scope, request, request.params.taskId)
      return await reply.code(204).send(null)
    })
  app.get<OfTask>('/tasks/:taskId/artifacts', { schema: { summary: 'List a task\'s files', tags, params, querystring: ArtifactQuery, response: { 200: ArtifactList, ...refusals } } },
    (request) => handleArtifacts(scope, request, request.params.taskId))
  app.post<OfTask>('/tasks/:taskId/artifacts', {
    bodyLimit: Math.max(bodyLimit, scope.options.maxArtifactBytes + FORM_BYTES),
    schema: { summary: 'Upload a file for a task', tags, params, consumes: ['multipart/form-data'], response: { 200: ArtifactBody, ...refusals } }
  }, (request) => handleUpload(scope, request, request.params.taskId))
  app.get<OfArtifact>('/tasks/:taskId/artifacts/:artifactId', {
    schema: {
      summary: 'Download a file of a task',
      tags,
      params: ArtifactParams,
      response: { 200: bytes, 206: bytes, 304: Type.Null(), 416: ErrorBody, ...refusals }
    }
  }, (request, reply) => handleDownload(scope, request, reply, request.params.taskId, request.params.artifactId))
  app.get('/agents', { schema: { summary: 'List agents', tags, response: { 200: AgentList, ...refusals } } },
    (request) => handleAgents(scope, request))
}

/** Error bodies, JSON alone, and bodies that may be empty: clients cancel without one. */
export function prepareScope (app: FastifyInstance): void {
  app.setErrorHandler(handleError)
  // The parsers of the handlers say what is wrong in this protocol's words; the schemas are documentation.
  app.setValidatorCompiler(takeAsIs)
  app.removeContentTypeParser(['text/plain', 'application/json'])
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined)
    else parseJson(request, body as string, done) // as asked for
  })
}

const takeAsIs: FastifySchemaCompiler<unknown> = () => (value: unknown) => ({ value })
