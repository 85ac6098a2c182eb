import { type Run } from '../../lib/runs/index.ts'
import { isHeld } from './ending.ts'
import { lookUp, type TaskScope } from './scope.ts'

/** Milliseconds between two looks at a task that another node executes. */
const REMOTE_POLL_MS = 1_000

/** Waits until a task is over or asks for an answer; undefined when the time is up, the client has left, or the server closes. */
export async function waitForTask (scope: TaskScope, first: Run, timeoutMs: number, left: Promise<void>): Promise<Run | undefined> {
  const { engine } = scope.host
  const { owner } = first.record.key
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
      if (isSettled(run)) return run
      const rest = end - performance.now()
      if (isOver || rest <= 0) return undefined
      const isLocal = run.record.node === engine.node
      if (isLocal && !isHeld(run.record)) run.settled().then(() => { wake() })
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, isLocal && !isHeld(run.record) ? rest : Math.min(rest, REMOTE_POLL_MS)).unref()
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      if ((isLocal && !isHeld(run.record)) || isSettled(run)) continue
      run = await lookUp(scope, owner, first.record.clientId) ?? run
    }
  } finally {
    wake()
    scope.closing.removeEventListener('abort', stop)
  }
}

function isSettled ({ record }: Run): boolean {
  return record.state !== 'pending' && record.state !== 'running' && !isHeld(record)
}
