import type { LogEvent } from '../event-log.ts'
import type { NewInterrupt } from '../interrupts.ts'
import type { LeaseRequest } from '../leases.ts'
import type { NewRun, RunRecord } from '../run-store.ts'
import type { Store } from '../store.ts'

/** The little of a test runner that the suite needs; tap's `t` is one. */
export interface ConformanceTest {
  test (name: string, body: (t: ConformanceTest) => Promise<void>): unknown
  /** Strict equality. */
  equal (found: unknown, wanted: unknown, ...message: [] | [string]): unknown
  /** Deep equality of plain values. */
  same (found: unknown, wanted: unknown, ...message: [] | [string]): unknown
}

/** A store that a backend opened for one case. It is empty, and no other case sees what is written to it. */
export interface OpenStore {
  readonly store: Store
  /** A second connection to the same data, as another node would have. Absent: `store` serves both. */
  readonly peer?: Store
  /** Closes the store, as a stopped process would, and opens the same data again. Absent: nothing survives, and nothing is tested. */
  reopen?(): Promise<Store>
  /** Moves the store's clock forward, or waits that long. Leases and times to live in the suite are whole seconds. */
  advance (ms: number): void | Promise<void>
  /** False where operations may overtake each other on the way to the store, as retries do. @default true */
  readonly inOrder?: boolean
  /** Ends everything that `open` began. */
  close (): Promise<void>
}

/** A backend under test. */
export interface StoreBackend {
  readonly name: string
  open (): Promise<OpenStore>
}

/** What a case works with. */
export interface Bench extends OpenStore {
  readonly peer: Store
}

/** Cases by their name, a sentence about behaviour. */
export type Cases = Readonly<Record<string, (t: ConformanceTest, bench: Bench) => Promise<void>>>

/** The lease that `aLease` asks for, in milliseconds. */
export const LEASE_MS = 10_000

let count = 0

/** A text that no other call returned. */
export function unique (prefix: string): string {
  return `${prefix}-${++count}`
}

/** A run to create, with what the case cares about replaced. */
export function aRun (fields: Partial<NewRun> = {}): NewRun {
  return {
    key: { owner: { tenant: 'acme', id: 'ann' }, protocol: 'fake', id: unique('run') },
    clientId: 'client-1',
    session: 'session-1',
    agent: 'assistant',
    state: 'running',
    epoch: unique('epoch'),
    createdAt: 1_000,
    detail: {},
    ...fields
  }
}

/** A lease request of its own. */
export function aLease (node = 'node-a'): LeaseRequest {
  return { node, op: unique('lease'), ms: LEASE_MS }
}

/** Indexes and creates a run, as an engine does. */
export async function started (store: Store, fields: Partial<NewRun> = {}, lease = aLease()): Promise<RunRecord> {
  const run = aRun(fields)
  const { key, clientId, session, createdAt } = run
  await store.index.add({ key, clientId, session, createdAt })
  return (await store.runs.create(run, lease)).record
}

/** A run that waits, without a lease. */
export async function waiting (store: Store, fields: Partial<NewRun> = {}): Promise<RunRecord> {
  const record = await started(store, fields)
  const result = await store.runs.update(record.key, expect(record), { state: 'waiting' })
  return recordOf(result)
}

/** What must be true for a change that nobody came before. */
export function expect (record: RunRecord): { readonly version: number, readonly fence: number, readonly op: string } {
  return { version: record.version, fence: record.fence, op: unique('op') }
}

/** The record of a result that has one. */
export function recordOf (result: object): RunRecord {
  return (result as { readonly record: RunRecord }).record // a result without one fails the case
}

/** An interrupt to open. */
export function anInterrupt (id: string, fields: Partial<NewInterrupt> = {}): NewInterrupt {
  const toolCall = { type: 'tool_use' as const, id, name: 'write', input: { path: '/tmp/x', lines: [] } }
  return { id, kind: 'confirm', pending: { kind: 'confirm', replyId: 'reply-1', toolCall }, createdAt: 1_000, ...fields }
}

/** A run that waits for answers to these interrupts, without a lease. */
export async function paused (store: Store, interrupts: readonly NewInterrupt[], fields: Partial<NewRun> = {}, lease = aLease()): Promise<RunRecord> {
  const record = await started(store, fields, lease)
  return recordOf(await store.runs.commit(record.key, expect(record), { patch: { state: 'waiting' }, firstSeq: 1, events: [], interrupts }))
}

/** Events `first` to `last`, each with a payload that names it. */
export function events (first: number, last: number, by = 'a'): readonly LogEvent[] {
  const list: LogEvent[] = []
  for (let seq = first; seq <= last; seq++) list.push({ seq, data: `{"by":"${by}","n":${seq}}` })
  return list
}

/** How often each kind of result occurs. */
export function kinds (results: readonly { readonly kind: string }[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { kind } of results) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** The code of the error a promise rejects with, `none` if it resolves. */
export async function codeOf (promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return (error as { readonly code?: unknown }).code // an error, or the case fails by what this is
  }
  return 'none'
}

/** `count` rivals doing the same at once, in turn on either connection. */
export function rivals<Result> (bench: Bench, count: number, act: (store: Store, index: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => act(index % 2 === 0 ? bench.store : bench.peer, index)))
}
