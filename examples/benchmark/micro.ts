import { type AgentEvent, type AgentEventInit, Normaliser } from '../../lib/agent/index.ts'
import { EventBus, type Topic } from '../../lib/bus/index.ts'
import { sseView } from '../../lib/sse/index.ts'
import { resolveMappingConfig } from '../../plugins/ag-ui/config.ts'
import { createProjection, type JsonProjection } from '../../plugins/ag-ui/events.ts'
import { frameOf, payloadOf, UNSTAMPED } from './payload.ts'
import { type Spread, spreadOf } from './stats.ts'

/** Our own pieces alone, in this process: what each adds to an event, without a socket. */

const RUN_EVENTS = 2_000
const RUNS = 100
const WARM_UP_RUNS = 50

/** Runs `RUN_EVENTS` events through a piece. */
interface Piece {
  readonly name: string
  run (): void | Promise<void>
}

const view = sseView()
const config = resolveMappingConfig({})
const bus = new EventBus({ replay: { maxEvents: RUN_EVENTS + 10, ttlMs: 0 } })
const line = JSON.stringify(payloadOf(UNSTAMPED))
let sum = 0
let topics = 0

const PIECES: readonly Piece[] = [
  { name: 'JSON.stringify of the event (for comparison)', run: () => each(() => { sum += JSON.stringify(payloadOf(UNSTAMPED)).length }) },
  { name: 'JSON.stringify, frame and Buffer.from (for comparison)', run: () => each(() => { sum += frameOf(UNSTAMPED).length }) },
  { name: 'normalise', run: normalise },
  { name: 'map to AG-UI', run: map },
  { name: 'append, nobody reads', run: () => append(0) },
  { name: 'append, one reader', run: () => append(1) },
  { name: 'append, ten readers', run: () => append(10) },
  { name: 'normalise, map, append, one reader', run: whole }
]

/** CPU nanoseconds per event of each piece; CPU, since others may use the machine too. */
export async function measureMicro (reps: number): Promise<readonly { readonly name: string, readonly nanoseconds: Spread }[]> {
  const samples = new Map<Piece, number[]>(PIECES.map((piece) => [piece, []]))
  for (const piece of PIECES) await repeat(piece, WARM_UP_RUNS)
  for (let rep = 0; rep < reps; rep++) {
    for (const piece of PIECES) samples.get(piece)?.push(await repeat(piece, RUNS) * 1e3 / (RUNS * RUN_EVENTS))
  }
  if (!Number.isFinite(sum)) throw new Error('The work was optimised away.')
  return PIECES.map((piece) => ({ name: piece.name, nanoseconds: spreadOf(samples.get(piece) ?? []) }))
}

/** CPU microseconds of so many runs. */
async function repeat (piece: Piece, runs: number): Promise<number> {
  const before = process.cpuUsage()
  for (let i = 0; i < runs; i++) await piece.run()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

function each (work: () => void): void {
  for (let i = 0; i < RUN_EVENTS; i++) work()
}

function normalise (): void {
  const normaliser = new Normaliser({ agentName: 'bench', sessionId: 's' })
  const count = (event: AgentEvent): void => { sum += event.type.length }
  each(() => normaliser.push(delta(), count))
  normaliser.end({ kind: 'returned' }, count)
}

function map (): void {
  const projection = newProjection()
  const count = (data: string): void => { sum += data.length }
  const envelope = { id: 'e', createdAt: '2025-01-01T00:00:00.000Z', replyId: 'r' }
  projection.open(count)
  projection.next({ type: 'AGENT_START', ...envelope }, count)
  projection.next({ type: 'TEXT_BLOCK_START', ...envelope, blockId: 'b' }, count)
  each(() => projection.next({ type: 'TEXT_BLOCK_DELTA', ...envelope, blockId: 'b', delta: payloadOf(UNSTAMPED).delta }, count))
}

async function append (readers: number): Promise<void> {
  const topic = newTopic()
  const ended = Promise.all(Array.from({ length: readers }, () => read(topic)))
  each(() => topic.append({ data: line }))
  topic.end()
  await ended
}

async function whole (): Promise<void> {
  const topic = newTopic()
  const ended = read(topic)
  const normaliser = new Normaliser({ agentName: 'bench', sessionId: 's' })
  const projection = newProjection()
  const emit = (data: string): void => { topic.append({ data }) }
  const next = (event: AgentEvent): void => { projection.next(event, emit) }
  projection.open(emit)
  each(() => normaliser.push(delta(), next))
  topic.end()
  await ended
}

function newProjection (): JsonProjection {
  return createProjection(config, {
    input: { threadId: 't', runId: 'r', state: {}, messages: [], tools: [], context: [], forwardedProps: {} }
  })
}

function delta (): AgentEventInit {
  return { type: 'TEXT_BLOCK_DELTA', delta: payloadOf(UNSTAMPED).delta }
}

function newTopic (): Topic {
  return bus.topic(`run-${++topics}`)
}

function read (topic: Topic): Promise<void> {
  return new Promise((resolve) => {
    topic.attach({
      view,
      sink: {
        write (chunk) {
          sum += chunk.length
          return true
        },
        gap () {},
        end () { resolve() }
      }
    })
  })
}
