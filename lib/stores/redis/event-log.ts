import type { AppendResult, EventLog, Fold, LogEvent, LogEvents, LogLimits, LogPage, SaveFoldResult } from '../event-log.ts'
import type { RunKey } from '../run-key.ts'
import type { Argument } from './connection.ts'
import { countOf, decodeEntry, encodeEntry } from './entry.ts'
import type { RedisParts } from './parts.ts'
import { APPEND, READ, SAVE_FOLD } from './scripts/log.ts'

/** More than any sequence, and still a number that Lua writes out. */
const MAX_SEQ = 10_000_000_000_000

/** {@link EventLog} in Redis: a stream a run, several events an entry. */
export class RedisEventLog implements EventLog {
  readonly #parts: RedisParts

  constructor (parts: RedisParts) {
    this.#parts = parts
  }

  async append (key: RunKey, fence: number, firstSeq: number, events: LogEvents, limits?: LogLimits): Promise<AppendResult> {
    const { connection, keys, owned } = this.#parts
    const [record, log] = keys.run(key)
    const last = firstSeq + events.length - 1
    const answer = await connection.run(
      'log.append', APPEND, [log, record],
      owned.mark(record, fence), fence, firstSeq - 1, last, events.length === 0 ? '' : encodeEntry(events), ...trimArguments(firstSeq, last, limits)
    )
    if (!Array.isArray(answer)) return { kind: 'ok', last }
    const [kind, value] = answer as ['ok' | 'fenced' | 'gone' | 'misplaced', string | number | undefined] // as the script answers
    switch (kind) {
      case 'ok':
      case 'misplaced': return { kind, last: Number(value) }
      case 'fenced': owned.remove(record); return { kind, fence: Number(value) }
      case 'gone': owned.remove(record); return { kind }
    }
  }

  async read (key: RunKey, after: number, limit: number): Promise<LogPage | undefined> {
    const { connection, keys } = this.#parts
    const [record, log] = keys.run(key)
    const from = Math.min(Math.max(Math.floor(after), -1), MAX_SEQ)
    const answer = await connection.run('log.read', READ, [log, record], Number.isNaN(from) ? 0 : from, limit) as
      [id: string, head: string, last: string, entries: readonly string[]] | null // as the script answers
    if (answer === null) return undefined
    const [id, head, last, entries] = answer
    const events: LogEvent[] = []
    for (let index = 0; index < entries.length; index += 2) {
      decodeEntry(Number(entries[index]), entries[index + 1] as string, from, limit, events) // by twos
    }
    return { oldest: oldestOf(id, head), last: Number(last), events }
  }

  async saveFold (key: RunKey, fence: number, fold: Fold): Promise<SaveFoldResult> {
    const { connection, keys, owned } = this.#parts
    const [record] = keys.run(key)
    const [kind, value] = await connection.run(
      'log.saveFold', SAVE_FOLD, [record], owned.mark(record, fence), fence, fold.seq, fold.state
    ) as ['ok' | 'fenced' | 'gone', string | undefined] // as the script answers
    return kind === 'fenced' ? { kind, fence: Number(value) } : { kind }
  }

  async loadFold (key: RunKey): Promise<Fold | undefined> {
    const { connection, keys } = this.#parts
    const [seq, state] = await connection.command('log.loadFold', 'HMGET', keys.run(key)[0], 'Fs', 'Fd') as (string | null)[] // as HMGET answers
    return seq == null || state == null ? undefined : { seq: Number(seq), state }
  }
}

/**
 * Byte limit, sequence before which entries go, floor; empty where there is none. Sequences are named only now and then, so that most
 * appends have nothing to trim: between the limit and a quarter more of it is kept.
 */
export function trimArguments (first: number, last: number, { maxEvents, maxBytes, floor }: LogLimits = {}): readonly Argument[] {
  let before: Argument = ''
  if (maxEvents !== undefined) {
    const step = Math.max(1, Math.floor(maxEvents / 4))
    if (Math.floor(last / step) > Math.floor((first - 1) / step)) before = Math.max(1, last - Math.max(1, maxEvents) + 1)
  }
  return [maxBytes === undefined ? '' : Math.max(1, maxBytes), before, floor ?? '']
}

/** The first sequence of the oldest entry: a seal says after which its ownership begins, events how many they are. */
function oldestOf (id: string, head: string): number {
  const seq = Number(id.slice(id.indexOf('-') + 1))
  return seq === 0 ? Number(head) + 1 : seq - countOf(head) + 1
}
