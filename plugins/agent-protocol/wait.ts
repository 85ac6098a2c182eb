import { type Run } from '../../lib/runs/index.ts'
import { isEnded } from '../../lib/stores/index.ts'
import { isHeld } from './ending.ts'
import { lookUp, type TaskScope } from './scope.ts'
import { openInterrupts } from './snapshot.ts'

/** Milliseconds between two looks at a task of which nobody tells when it goes on. */
const LOOK_AGAIN_MS = 1_000
/** Milliseconds between two looks at a task of another node, which tells of itself as long as that node is there. */
const LOOK_ANYWAY_MS = 15_000
/** Milliseconds until a task that was answered on another node is seen to go on there. */
const GOING_ON_MS = 50

/** Waits until a task is over or asks for an answer; undefined when the time is up, the client has left, or the server closes. */
export async function waitForTask (scope: TaskScope, first: Run, timeoutMs: number, left: Promise<void>): Promise<Run | undefined> {
  const end = performance.now() + timeoutMs
  let run = first
  let isOver = false
  let wake = (): void => {}
  const stop = (): void => {
    isOver = true
    wake()
  }
  left.then(stop)
  scope.closing.addEventListener('abort', stop, { once: true })
  try {
    for (;;) {
      const pause = await pauseOf(scope, run)
      if (pause === undefined) return run
      const rest = end - performance.now()
      if (isOver || rest <= 0) return undefined
      const woken = new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(rest, pause)).unref()
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      await (pause >= LOOK_ANYWAY_MS ? followed(scope, run, woken, () => { wake() }) : woken)
      // A node that gives a run up does not know what becomes of it: the store does.
      const { state } = run.record
      if (!isOver && (!isEnded(state) || state === 'lost')) run = await lookUp(scope, first.record.key.owner, first.record.clientId) ?? run
    }
  } finally {
    wake()
    scope.closing.removeEventListener('abort', stop)
  }
}

/** Milliseconds until the task must be looked at again; without an end where this process would know, undefined where nothing is to be waited for. */
async function pauseOf (scope: TaskScope, { record }: Run): Promise<number | undefined> {
  const { key, state } = record
  if (isEnded(state)) return undefined
  // Answered a moment ago, its record still says that it waits.
  if (scope.placeOf.has(key.id)) return Infinity
  if (state !== 'waiting') return LOOK_ANYWAY_MS
  if (isHeld(record)) return LOOK_AGAIN_MS
  const open = await openInterrupts(scope.host.store.interrupts, record)
  return open.length > 0 ? undefined : GOING_ON_MS
}

/** Until the task has settled, or `woken`. What another node executes is followed meanwhile. */
async function followed ({ host: { engine }, options }: TaskScope, run: Run, woken: Promise<void>, wake: () => void): Promise<void> {
  // Who waits is no reader: where a task ends with its last reader he must not come and go as one.
  const connection = run.record.node !== engine.node && options.onDisconnect === 'continue' ? run.connect() : undefined
  run.settled().then(wake)
  try {
    await woken
  } finally {
    connection?.close()
  }
}
