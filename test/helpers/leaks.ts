import { type EventEmitter } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { grownBy, HeapPicture } from './heap-census.ts'

/** What a server is put through. */
export interface LeakTrial {
  /** The server's own emitters; the process is looked at anyway. */
  readonly emitters: readonly EventEmitter[]
  /** Serves that many clients. */
  serve (clients: number): Promise<void>
  /** Resolves when the server has had the time to let go of them. */
  settle (): Promise<void>
}

/** What is there, and was not before. */
export interface Leftovers {
  readonly handles: readonly [before: object, after: object]
  readonly listeners: readonly [before: number, after: number]
  /** Bytes after two collections each. */
  readonly heapGrowth: number
  /** What is reachable more often than before, by one for each hundred clients at least. */
  readonly left: readonly (readonly [name: string, by: number])[]
}

/** By then whatever is made once is made. */
const FIRST = 500
/** In these V8 compiles what is hot by now: some 1.8 MB of code and not one object, as pictures of the heap show. */
const WARM_UP = 1_000

/** Serves so many clients and says what they have left behind. For a process of its own, started with `--expose-gc`. */
export async function leftBy (clients: number, trial: LeakTrial): Promise<Leftovers> {
  await trial.serve(FIRST)
  await look(trial)
  const first = new HeapPicture()
  await trial.serve(WARM_UP)
  const before = await look(trial)
  await trial.serve(clients)
  const after = await look(trial)
  const last = new HeapPicture()
  return {
    handles: [before.handles, after.handles],
    listeners: [before.listeners, after.listeners],
    heapGrowth: after.heap - before.heap,
    left: grownBy(first.count(), last.count(), (WARM_UP + clients) / 100)
  }
}

async function look ({ emitters, settle }: LeakTrial): Promise<{ readonly heap: number, readonly handles: Record<string, number>, readonly listeners: number }> {
  await settle()
  global.gc?.()
  await delay(100)
  global.gc?.()
  const handles: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1
  const listeners = [process, ...emitters].reduce((sum, emitter) => sum + emitter.eventNames().reduce((all, name) => all + emitter.listenerCount(name), 0), 0)
  return { heap: process.memoryUsage().heapUsed, handles, listeners }
}
