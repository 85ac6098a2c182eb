import { type EngineObserver, type RunObserver } from '../../lib/runs/index.ts'

/** An observer that writes down what it is told, one line a call. */
export class RecordingObserver implements EngineObserver {
  readonly lines: string[] = []
  readonly storeCalls: string[] = []
  #count = 0

  starting ({ agent, protocol, isResumed, trace }: Parameters<NonNullable<EngineObserver['starting']>>[0]): RunObserver {
    const name = `#${++this.#count}`
    const tell = (what: string): void => { this.lines.push(`${name} ${what}`) }
    tell(`${isResumed ? 'resuming' : 'starting'} ${agent} over ${protocol}${trace === undefined ? '' : ` traced ${trace}`}`)
    return {
      trace: `trace-of-${name}`,
      running: () => { tell('running') },
      execute: async (work) => {
        tell('executes')
        return await work()
      },
      firstEvent: () => { tell('first event') },
      answers: (paused) => { tell(`answers ${paused.clientId} traced ${paused.trace}`) },
      ended: ({ reason, code }) => { tell(`ended ${reason}${code === undefined ? '' : ` ${code}`}`) }
    }
  }

  reaped ({ clientId }: Parameters<NonNullable<EngineObserver['reaped']>>[0]): void {
    this.lines.push(`reaped ${clientId}`)
  }

  storeCalled (operation: string, ms: number, outcome: string): void {
    this.storeCalls.push(`${operation} ${outcome}${Number.isFinite(ms) && ms >= 0 ? '' : ` after ${ms} ms`}`)
  }

  /** The reasons of all ends so far. */
  get ends (): string[] {
    return this.lines.flatMap((line) => / ended (.*)/.exec(line)?.[1] ?? [])
  }
}
