import { type TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { type TSchema, Type } from '@sinclair/typebox'
import { type FastifyInstance, type FastifySchemaCompiler } from 'fastify'
import { ConnectInput, handleConnect } from './connect-route.ts'
import { conform } from './conform.ts'
import { handleError, handleNotFound, InvalidInputError } from './error-handler.ts'
import { parseRunInput } from './input.ts'
import { handleRun } from './run-route.ts'
import { ErrorBody, type InputIssue, RunAgentInput } from './schemas.ts'
import { type AgUiScope } from './scope.ts'
import { handleStop } from './stop-route.ts'

const tags = ['ag-ui']
const PARAMS_DEPTH = 2

const EventStream = Type.String({ description: 'Server-sent events: one AG-UI event a frame, `id: <epoch>.<seq>`, ended by RUN_FINISHED or RUN_ERROR.' })
const refusals = { 400: ErrorBody, 401: ErrorBody, 403: ErrorBody, 404: ErrorBody, 406: ErrorBody, 409: ErrorBody, 413: ErrorBody, 415: ErrorBody, 429: ErrorBody, 503: ErrorBody }
const streaming = { 200: { description: 'The run.', content: { 'text/event-stream': { schema: EventStream } } }, ...refusals }

const AgentParams = Type.Object({ agentId: Type.String({ minLength: 1 }) })
const StopParams = Type.Object({ threadId: Type.String({ minLength: 1 }) })
const StopBody = Type.Object({ runId: Type.Optional(Type.String({ minLength: 1, description: 'Stop only if this is the active run.' })) }, { description: 'May be absent.' })
const StopAnswer = Type.Object({ threadId: Type.String(), stopped: Type.Boolean({ description: 'Whether a run was active and has been stopped.' }) })

/** Adds the routes of one registration, with this protocol's own error bodies. */
export function registerRoutes (scopeApp: FastifyInstance, scope: AgUiScope): void {
  const app = scopeApp.withTypeProvider<TypeBoxTypeProvider>()
  const { bodyLimit, enablePathRouting, maxDepth } = scope.options

  // Only JSON: a page of another origin can send text/plain without asking (CORS), and would start runs with it.
  app.removeContentTypeParser('text/plain')
  app.setErrorHandler(handleError)
  // At the root it would be everybody's: there the host's stands.
  if (scope.mount !== '' && scope.mount !== '/') app.setNotFoundHandler(handleNotFound)

  const runBody = bodyCompiler((body) => parseRunInput(body, { maxDepth }))
  const connectBody = bodyCompiler((body) => conformed(ConnectInput, body, maxDepth))
  const run = { summary: 'Run an agent', tags, body: RunAgentInput, response: streaming }
  const connect = { summary: 'Rejoin a thread', tags, body: ConnectInput, response: streaming }

  app.post('/run', { bodyLimit, validatorCompiler: runBody, schema: run }, (request, reply) => handleRun(scope, request, reply, undefined))
  app.post('/connect', { bodyLimit, validatorCompiler: connectBody, schema: connect }, (request, reply) => handleConnect(scope, request, reply, request.body))

  if (enablePathRouting) {
    app.post('/run/:agentId', { bodyLimit, validatorCompiler: runBody, schema: { ...run, params: AgentParams } },
      (request, reply) => handleRun(scope, request, reply, request.params.agentId))
    // The thread alone decides what is replayed; the agent in the path is for clients that build both paths alike.
    app.post('/connect/:agentId', { bodyLimit, validatorCompiler: connectBody, schema: { ...connect, params: AgentParams } },
      (request, reply) => handleConnect(scope, request, reply, request.body))
  }

  app.post('/stop/:threadId', {
    bodyLimit,
    validatorCompiler: bodyCompiler((body) => conformed(StopBody, body ?? {}, maxDepth)),
    schema: { summary: 'Stop a thread\'s run', tags, params: StopParams, body: StopBody, response: { 200: StopAnswer, ...refusals } }
  }, (request) => handleStop(scope, request, request.params.threadId, request.body.runId))
}

type Parsed = { readonly kind: 'valid', readonly input: unknown } | { readonly kind: 'invalid', readonly issues: readonly InputIssue[] }

/** Validates a route's body by `parse`, whose result is what the handler gets, and everything else by its schema. */
function bodyCompiler (parse: (body: unknown) => Parsed): FastifySchemaCompiler<unknown> {
  return ({ schema, httpPart }) => (value: unknown) => {
    const parsed = httpPart === 'body' ? parse(value) : conformed(schema as TSchema, value, PARAMS_DEPTH)
    return parsed.kind === 'valid' ? { value: parsed.input } : { error: new InvalidInputError(parsed.issues) }
  }
}

function conformed (schema: TSchema, value: unknown, maxDepth: number): Parsed {
  const { value: input, issues } = conform(schema, value, maxDepth)
  return issues.length === 0 ? { kind: 'valid', input } : { kind: 'invalid', issues: issues.map(({ path, reason }) => ({ path: path === '' ? '(body)' : path, reason })) }
}
