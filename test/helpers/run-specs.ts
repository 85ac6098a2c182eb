import { type Agent, type AgentInput } from '../../lib/agent/index.ts'
import { type Run, type RunSpec } from '../../lib/runs/index.ts'
import { ledger } from './ledger-protocol.ts'

/** An input with nothing in it. */
export const NO_INPUT: AgentInput = { messages: [], history: 'append' }

/** A spec of the ledger protocol; anything can be overridden. */
export function specOf (agent: RunSpec['agent'], overrides: Partial<RunSpec> = {}): RunSpec {
  return {
    protocol: ledger,
    agent,
    agentId: 'scripted',
    clientId: 'r1',
    session: 's1',
    owner: {},
    input: NO_INPUT,
    onDisconnect: 'continue',
    runTimeoutMs: 0,
    cancelGraceMs: 1_000,
    onBusySession: 'reject',
    holdGateWhileWaiting: true,
    replay: { maxEvents: 1_000, maxBytes: 1_000_000, ttlMs: 60_000 },
    ...overrides
  }
}

/** What a run's topic holds, parsed. */
export function linesOf (run: Run): unknown[] {
  return run.topic.read(0).map(({ data }) => JSON.parse(data) as unknown)
}

/** The kinds of a run's lines without its verbose ones. */
export function kindsOf (run: Run): string[] {
  return run.topic.read(0).flatMap(({ data, level }) => (level ?? 0) > 1 ? [] : [(JSON.parse(data) as { kind: string }).kind])
}

export type { Agent }
