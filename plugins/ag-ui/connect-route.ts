import { randomUUID } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { type FastifyReply, type FastifyRequest } from 'fastify'
import { type Cursor, type Gap, parseCursor } from '../../lib/bus/index.ts'
import { type Run, type RunEngine, untilStored } from '../../lib/runs/index.ts'
import { acceptsEventStream } from '../../lib/sse/index.ts'
import { type InterruptRecord, type Owner } from '../../lib/stores/index.ts'
import { ownerOf } from '../agents/index.ts'
import { NotAcceptableError } from './error-handler.ts'
import { type AgUiEvent } from './event-schemas.ts'
import { frameOf } from './frames.ts'
import { PROTOCOL_VERSION } from './lifecycle.ts'
import { withOpenInterrupts } from './open-interrupts.ts'
import { type AgUiScope } from './scope.ts'
import { followFromStart, followRun, snapshotOf } from './stream.ts'

/** Body of `/connect`; a whole RunAgentInput fits too, of which only these members are read. */
export const ConnectInput = Type.Object({
  threadId: Type.String({ minLength: 1 }),
  runId: Type.Optional(Type.String({ minLength: 1, description: 'The run to rejoin. Absent, or unknown: the thread\'s running or last one.' })),
  lastSeenEventId: Type.Optional(Type.String({ description: 'Where to go on, for clients that cannot send Last-Event-ID.' }))
})
export type ConnectInput = Static<typeof ConnectInput>

/**
 * `POST /connect`: rejoins a thread. A cursor that can be honoured gives exactly the remaining frames of its run. Without
 * one a running run is told from its first frame, or from a snapshot where that is no longer kept; a finished one as a run of
 * snapshots, with what the thread waits for in its outcome. A thread that is unknown, or somebody else's, is an empty finished run.
 */
export async function handleConnect (scope: AgUiScope, request: FastifyRequest, reply: FastifyReply, input: ConnectInput): Promise<void> {
  if (!acceptsEventStream(request.headers.accept)) throw new NotAcceptableError()
  const owner = ownerOf(await scope.host.principalOf(request))
  scope.host.admitStream(owner, reply)
  const header = request.headers['last-event-id']
  const asked = typeof header === 'string' && header !== '' ? header : input.lastSeenEventId ?? ''
  const cursor = parseCursor(asked)
  const { run, open } = await look(scope, owner, input, cursor)

  if (run === undefined) return sendEvents(scope, reply, emptyRun(input))
  if (cursor !== undefined) {
    const left = new AbortController()
    reply.raw.once('close', () => { left.abort() })
    await untilStored(run, cursor, left.signal)
    if (reply.raw.destroyed) {
      reply.hijack()
      return
    }
  }
  if (cursor !== undefined && isKept(run, cursor)) return followRun(scope, reply, run, { own: false, after: cursor })
  const gap = asked === '' ? undefined : missed(run, cursor)
  const isActive = isRunning(run)
  // Without the echo the first frame does not bring the transcript that a fresh client needs.
  if (isActive && scope.options.mapping.echoInput === true) return followFromStart(scope, reply, run, gap)
  return followRun(scope, reply, run, { own: false, ...gap !== undefined && { gap }, ...snapshotOf(run, isActive ? undefined : (events) => withOpenInterrupts(events, open, run.record)) })
}

/**
 * Finds the run to be shown and what it, or with it its thread, waits for. Both are of one moment: while somebody looks, somebody else
 * may answer, and questions are only shown with the run that left them open.
 */
async function look ({ host, protocol }: AgUiScope, owner: Owner, input: ConnectInput, cursor: Cursor | undefined): Promise<{ readonly run?: Run, readonly open: readonly InterruptRecord[] }> {
  const { engine } = host
  for (;;) {
    const last = await engine.lastOf(owner, protocol.name, input.threadId)
    const run = last === undefined ? undefined : await findRun(engine, owner, protocol.name, input, cursor, last)
    if (run === undefined) return { open: [] }
    if (isRunning(run)) return { run, open: [] }
    const open = await engine.openInterrupts(owner, protocol.name, input.threadId)
    const newest = await engine.lastOf(owner, protocol.name, input.threadId)
    if (newest?.record.key.id !== last?.record.key.id) continue
    return { run, open: run === last ? open : open.filter((record) => record.run.id === run.record.key.id) }
  }
}

function isRunning ({ record: { state } }: Run): boolean {
  return state === 'pending' || state === 'running'
}

/** The run that the cursor belongs to, else the one that was asked for, else the thread's running or last one. */
async function findRun (
  engine: RunEngine, owner: Owner, protocol: string, { threadId, runId }: ConnectInput, cursor: Cursor | undefined, last: Run
): Promise<Run | undefined> {
  if (runId === undefined && cursor?.epoch === undefined) return last
  if (cursor?.epoch !== undefined && last.topic.lastOf(cursor.epoch) === undefined) {
    const older = await engine.findByEpoch(owner, protocol, threadId, cursor.epoch)
    if (older !== undefined) return older
  }
  if (runId === undefined || last.record.clientId === runId) return last
  return await engine.find(owner, protocol, runId, threadId) ?? last
}

/** Whether everything after the cursor can still be told. */
function isKept ({ topic }: Run, { epoch, seq }: Cursor): boolean {
  const last = epoch === undefined ? undefined : topic.lastOf(epoch)
  return last !== undefined && seq >= topic.oldest - 1 && seq <= Math.min(last, topic.stored)
}

/** Why a cursor is not honoured. */
function missed ({ topic }: Run, cursor: Cursor | undefined): Gap['reason'] {
  if (cursor === undefined) return 'invalid'
  if (cursor.epoch === undefined || topic.lastOf(cursor.epoch) === undefined) return 'epoch'
  return cursor.seq < topic.oldest - 1 ? 'trimmed' : 'ahead'
}

function emptyRun ({ threadId, runId = randomUUID() }: ConnectInput): AgUiEvent[] {
  return [
    { type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION },
    { type: 'RUN_FINISHED', threadId, runId }
  ]
}

function sendEvents (scope: AgUiScope, reply: FastifyReply, events: readonly AgUiEvent[]): void {
  const stream = scope.hub.open(reply)
  stream.end(events.map((event) => frameOf(JSON.stringify(event))).join(''))
}
