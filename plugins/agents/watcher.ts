import { type FastifyInstance } from 'fastify'
import { type EngineObserver, type RunObserver, type StartingRun } from '../../lib/runs/index.ts'
import { type SseObserver, type StreamObserver } from '../../lib/sse/index.ts'
import { type AgentsHost } from './host.ts'

/** Something that watches over the runs and streams of a server: metrics, traces. */
export interface Watcher extends EngineObserver {
  /** Watches the streams of one protocol. */
  streams (protocol: string): SseObserver
  /** Adds the hooks and routes that it needs. */
  attach (app: FastifyInstance, host: AgentsHost): void
}

/** Several watchers as one. */
export function watchTogether (watchers: readonly Watcher[]): Omit<Watcher, 'attach'> | undefined {
  const [first] = watchers
  if (watchers.length < 2) return first
  return {
    starting: (run) => together(watchers, run),
    reaped: (record) => { for (const watcher of watchers) watcher.reaped?.(record) },
    storeCalled: (operation, ms, outcome) => { for (const watcher of watchers) watcher.storeCalled?.(operation, ms, outcome) },
    streams: (protocol) => {
      const observers = watchers.map((watcher) => watcher.streams(protocol))
      return { opened: (reply, about) => streamTogether(observers.flatMap((observer) => observer.opened(reply, about) ?? [])) }
    }
  }
}

function together (watchers: readonly Watcher[], run: StartingRun): RunObserver {
  const observers = watchers.flatMap((watcher) => watcher.starting?.(run) ?? [])
  const trace = observers.find((observer) => observer.trace !== undefined)?.trace
  return {
    ...trace !== undefined && { trace },
    running: () => { for (const observer of observers) observer.running?.() },
    execute: (work) => observers.reduce((inner, observer) => observer.execute === undefined ? inner : () => observer.execute?.(inner) ?? inner(), work)(),
    firstEvent: () => { for (const observer of observers) observer.firstEvent?.() },
    answers: (paused) => { for (const observer of observers) observer.answers?.(paused) },
    ended: (end) => { for (const observer of observers) observer.ended(end) }
  }
}

function streamTogether (observers: readonly StreamObserver[]): StreamObserver {
  return {
    gap: (reason) => { for (const observer of observers) observer.gap?.(reason) },
    closed: (outcome) => { for (const observer of observers) observer.closed(outcome) }
  }
}
