import type { LeaseRequest } from '../leases.ts'
import type { RunKey } from '../run-key.ts'
import type {
  Barrier, CommitResult, CreateResult, Expected, ExpectedAtBarrier, NewRun, RunPatch, RunRecord, RunStore, UpdateResult
} from '../run-store.ts'
import type { Argument } from './connection.ts'
import { encodeEntry } from './entry.ts'
import { trimArguments } from './event-log.ts'
import { memberOf } from './index-set.ts'
import { markOf } from './owned.ts'
import type { RedisParts } from './parts.ts'
import { endsRun, fieldsOfNew, fieldsOfPatch, parseRecord } from './record.ts'
import { REMOVE } from './scripts/run-index.ts'
import { COMMIT, CREATE, DELETE, RECORD_FIELDS, UPDATE } from './scripts/record.ts'

/** Milliseconds a run stands in the list of those that wait for answers before it may be taken for one that does not. */
export const WAITING_GRACE_MS = 60_000

/** {@link RunStore} in Redis. Each change is one script on the run's keys. */
export class RedisRuns implements RunStore {
  readonly #parts: RedisParts

  constructor (parts: RedisParts) {
    this.#parts = parts
  }

  async create (run: NewRun, lease: LeaseRequest): Promise<CreateResult> {
    const { connection, keys, owned, indexSet, options } = this.#parts
    const { key } = run
    const runKeys = keys.run(key)
    // Before the record: a run that no reaper would find must not exist.
    const until = await indexSet.touch('runs.create', keys.leases(key.protocol), lease.ms, memberOf(key, lease.op))
    const op = JSON.stringify(lease.op)
    const [kind, values] = await connection.runTimed(
      'runs.create', CREATE, runKeys, options.idleTtlMs, until, op, markOf(lease.op), lease.ms, ...fieldsOfNew(run, lease.node)
    ) as ['created' | 'exists', (string | null)[]] // as the script answers
    const record = parsed(values)
    if (kind === 'created' && record.fence === 1) owned.add(runKeys[0], 1, lease.op)
    return { kind, record }
  }

  async get (key: RunKey): Promise<RunRecord | undefined> {
    const { connection, keys } = this.#parts
    return parseRecord(await connection.command('runs.get', 'HMGET', keys.run(key)[0], ...RECORD_FIELDS) as (string | null)[]) // as HMGET answers
  }

  async update (key: RunKey, expected: Expected, patch: RunPatch): Promise<UpdateResult> {
    const { connection, keys } = this.#parts
    const answer = await connection.runTimed('runs.update', UPDATE, keys.run(key), ...this.#changeArguments(key, expected, patch))
    return this.#changed(key, answer) as UpdateResult // an update is never misplaced
  }

  async commit (key: RunKey, expected: ExpectedAtBarrier, barrier: Barrier): Promise<CommitResult> {
    const { connection, keys } = this.#parts
    const { firstSeq, events, limits, interrupts = [], closeInterrupts, fold } = barrier
    const until = interrupts.length === 0 ? '' : await this.#announceWaiting(key)
    const last = firstSeq + events.length - 1
    const answer = await connection.runTimed(
      'runs.commit', COMMIT, keys.run(key),
      ...this.#changeArguments(key, expected, barrier.patch),
      until,
      firstSeq, last, events.length === 0 ? '' : encodeEntry(events), ...trimArguments(firstSeq, last, limits),
      closeInterrupts === true ? 1 : '',
      ...fold === undefined ? ['', ''] : [fold.seq, fold.state],
      ...interrupts.flatMap((interrupt) => [JSON.stringify(interrupt.id), JSON.stringify(interrupt), interrupt.expiresAt ?? ''])
    )
    return this.#changed(key, answer)
  }

  async delete (key: RunKey): Promise<void> {
    const { connection, keys, owned } = this.#parts
    const runKeys = keys.run(key)
    const [session, clientId, lease] = await connection.run('runs.delete', DELETE, runKeys) as (string | null)[] // as the script answers
    owned.remove(runKeys[0])
    if (session == null || clientId == null) return
    const entry = { key, session: JSON.parse(session) as string, clientId: JSON.parse(clientId) as string }
    await Promise.all([
      this.#endLease('runs.delete', key, lease),
      connection.run('runs.delete', REMOVE, keys.index(key.owner, key.protocol, entry.session, entry.clientId), entryMember(entry))
    ])
  }

  /** Puts the run into its session's list of those that may wait for answers; returns until when it stands there for certain. */
  async #announceWaiting (key: RunKey): Promise<number | ''> {
    const { connection, keys, indexSet } = this.#parts
    const session = await connection.command('runs.commit', 'HGET', keys.run(key)[0], 'ss') as string | null // as HGET answers
    if (session === null) return ''
    const list = keys.waiting(key.owner, key.protocol, JSON.parse(session) as string)
    return await indexSet.touch('runs.commit', list, WAITING_GRACE_MS, memberOf(key))
  }

  #changeArguments (key: RunKey, { version, fence, op }: Expected, patch: RunPatch): readonly Argument[] {
    const { keys, owned, options: { endedTtlMs, idleTtlMs } } = this.#parts
    const fields = fieldsOfPatch(patch)
    return [
      endedTtlMs, idleTtlMs, version, fence ?? '', owned.mark(keys.run(key)[0], fence), op === undefined ? '' : JSON.stringify(op),
      patch.state ?? '', endsRun(patch) ? 1 : '', fields.length / 2, ...fields
    ]
  }

  #changed (key: RunKey, answer: unknown): CommitResult {
    const [kind, values, more] = answer as ['ok' | 'stale' | 'missing' | 'misplaced', (string | null)[], string | number | null] // as the scripts answer
    if (kind === 'missing') return { kind }
    const record = parsed(values)
    if (kind === 'misplaced') return { kind, last: Number(more), record }
    if (kind === 'ok' && typeof more === 'string') {
      this.#parts.owned.remove(this.#parts.keys.run(key)[0])
      // Nobody waits for it: an entry that stays is found to be over when it is due.
      this.#endLease('runs.update', key, more).catch(() => {})
    }
    return { kind, record }
  }

  async #endLease (operation: 'runs.update' | 'runs.delete', key: RunKey, lease: string | null | undefined): Promise<void> {
    const { connection, keys } = this.#parts
    if (lease != null) await connection.command(operation, 'ZREM', keys.leases(key.protocol), memberOf(key, JSON.parse(lease) as string))
  }
}

/** A run's member in its owner's lists: sorted by id where the times are equal. */
export function entryMember ({ key, session, clientId }: { readonly key: RunKey, readonly session: string, readonly clientId: string }): string {
  return `${idPart(key.id)}${JSON.stringify([key.protocol, session, clientId])}`
}

/** What a member begins with. The tab is less than any character that JSON leaves in a text. */
export function idPart (id: string): string {
  return `${JSON.stringify(id).slice(1, -1)}\t`
}

/** The record of an answer that has one. */
export function parsed (values: (string | null)[]): RunRecord {
  return parseRecord(values) as RunRecord // the script found the run
}
