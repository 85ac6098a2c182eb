import { type Test } from 'tap'
import { type Agent, type AgentEventInit, type Decision, type ToolUseBlock } from '../../lib/agent/index.ts'
import { type AttachOptions, type View } from '../../lib/bus/index.ts'
import { type EngineOptions, type ResumeResult, type Run, RunEngine, type StartResult } from '../../lib/runs/index.ts'
import { FaultPlan, faultyStore, memoryStore, type MemoryStoreOptions, type Store } from '../../lib/stores/index.ts'
import { type ScriptedAgent } from './scripted-agent.ts'

/** An engine on a memory store whose calls a test can hold or fail. */
export interface TestEngine { readonly engine: RunEngine, readonly store: Store, readonly plan: FaultPlan }

/** What a test says of its engine's store. */
export interface TestStoreOptions {
  readonly memory?: MemoryStoreOptions
  /** Whether the engine may know that the store ends with this process. @default false */
  readonly isVolatile?: boolean
}

/** Makes an engine that is closed with the test. */
export function makeEngine (t: Test, options: EngineOptions & TestStoreOptions = {}): TestEngine {
  const plan = new FaultPlan()
  const { memory, isVolatile = false, ...rest } = options
  const own = options.store === undefined ? memoryStore(memory) : undefined
  const store: Store = { ...faultyStore(options.store ?? own as Store, plan), isVolatile }
  const engine = new RunEngine({ ...rest, store })
  // All timers of ours are unref'ed; a server's sockets would keep the process alive.
  const alive = setInterval(() => {}, 60_000)
  t.teardown(async () => {
    clearInterval(alive)
    plan.heal()
    await engine.close({ timeoutMs: 100 })
    await own?.close()
  })
  return { engine, store, plan }
}

/** Two engines on one store, which ends with the test. */
export function makePair (t: Test): { readonly store: Store, readonly a: TestEngine, readonly b: TestEngine } {
  const store = memoryStore()
  t.teardown(() => store.close())
  return { store, a: makeEngine(t, { store }), b: makeEngine(t, { store }) }
}

/** The run of a start that must have succeeded. */
export function runOf (result: StartResult | ResumeResult): Run {
  if (result.kind === 'started' || result.kind === 'existing' || result.kind === 'resumed') return result.run
  throw new Error(`no run: ${JSON.stringify(result)}`)
}

/** A reader that keeps what it is sent, line by line. */
export class Reader {
  text = ''
  end: string | undefined
  readonly gaps: unknown[] = []
  readonly #waiters: (() => void)[] = []

  constructor (run: Run, view: View, options: Partial<AttachOptions> = {}) {
    run.topic.attach({
      view,
      ...options,
      sink: {
        write: (chunk) => {
          this.text += Buffer.from(chunk).toString('latin1')
          this.#wake()
          return true
        },
        gap: (gap) => { this.gaps.push(gap) },
        end: (why) => {
          this.end = why
          this.#wake()
        }
      }
    })
  }

  get lines (): string[] {
    return this.text.split('\n').filter((line) => line !== '')
  }

  /** Resolves when the condition holds. */
  async until (condition: (reader: this) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => { this.#waiters.push(resolve) })
  }

  #wake (): void {
    for (const waiter of this.#waiters.splice(0)) waiter()
  }
}

/** A tool call that needs an approval. */
export function call (id: string, name = 'delete', input: ToolUseBlock['input'] = { path: '/tmp/a' }): ToolUseBlock {
  return { type: 'tool_use', id, name, input }
}

/** Asks for approval of calls, each announced before. */
export function askFor (...ids: readonly string[]): AgentEventInit[] {
  return [
    ...ids.flatMap((id): AgentEventInit[] => [
      { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'delete' },
      { type: 'TOOL_CALL_END', toolCallId: id }
    ]),
    { type: 'REQUIRE_USER_CONFIRM', toolCalls: ids.map((id) => call(id)) }
  ]
}

/** Lets the agent's next execution ask for approvals and return; resolves when its run waits. */
export async function pause (agent: ScriptedAgent, run: Run, ...ids: readonly string[]): Promise<void> {
  const execution = await agent.called()
  await execution.say(...askFor(...ids.length > 0 ? ids : ['c1']))
  execution.finish()
  await run.settled()
}

/** A tool's result. */
export function resultOf (id: string): AgentEventInit[] {
  return [
    { type: 'TOOL_RESULT_START', toolCallId: id },
    { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: id, delta: 'done' },
    { type: 'TOOL_RESULT_END', toolCallId: id, state: 'success' }
  ]
}

export function approve (toolCallId: string): Decision {
  return { kind: 'confirm', toolCallId, approved: true }
}

export function deny (toolCallId: string): Decision {
  return { kind: 'confirm', toolCallId, approved: false }
}

/** Resolves after everything that is due now has run. */
export async function turn (): Promise<void> {
  await new Promise<void>((resolve) => { setImmediate(resolve) })
}

/** An agent that is a function making an iterable. */
export function agentOf (stream: Agent['stream'], rest: Partial<Agent> = {}): Agent {
  return { name: 'made', ...rest, stream }
}
