import { type JsonValue, type Kv, type KvKey, type Owner, type RunKey, type RunRecord } from '../stores/index.ts'
import { type Idempotency } from './spec.ts'

const POLL_MS = 25

/** What became of an attempt to admit a start (R15). */
export type AdmissionResult =
  /** Ours: start, and call `withdraw` if that fails. */
  | { readonly kind: 'admitted', withdraw (): Promise<void> }
  | { readonly kind: 'existing' | 'conflict', readonly record: RunRecord }

/** What admission works with. */
export interface AdmissionOptions {
  readonly kv: Kv
  /** Milliseconds after which what can not be stored is given up (R9). */
  readonly patienceMs: number
  /** Milliseconds a key is remembered. */
  readonly ttlMs: number
  /** The record of a run of ours, once its start has settled on this node. */
  recordOf (key: RunKey): Promise<RunRecord | undefined>
}

interface Entry { readonly [name: string]: JsonValue, readonly run: string, readonly fingerprint: string, readonly at: number }

/** Admits each idempotency key once. */
export class Admission {
  readonly #options: AdmissionOptions

  constructor (options: AdmissionOptions) {
    this.#options = options
  }

  /** What a start under this key would find; `undefined`: it would be a new one. Claims nothing. Rejects when the store is away. */
  async find (owner: Owner, protocol: string, idempotency: Idempotency): Promise<Exclude<AdmissionResult, { kind: 'admitted' }> | undefined> {
    const entry = await this.#options.kv.get(keyOf(owner, protocol, idempotency)) as Entry | undefined // written by this class alone
    const record = entry === undefined ? undefined : await this.#options.recordOf({ owner, protocol, id: entry.run })
    if (entry === undefined || record === undefined) return undefined
    const kind = meaningOf(entry, record, idempotency)
    return kind === 'new' ? undefined : { kind, record }
  }

  /** Claims a key for the run `run`. Rejects when the store is away. */
  async admit (run: RunKey, idempotency: Idempotency): Promise<AdmissionResult> {
    const { kv, ttlMs } = this.#options
    const key = keyOf(run.owner, run.protocol, idempotency)
    const mine: Entry = { run: run.id, fingerprint: idempotency.fingerprint, at: Date.now() }
    const admitted: AdmissionResult = {
      kind: 'admitted',
      withdraw: async () => { await kv.delete(key) }
    }
    for (;;) {
      const first = await kv.setIfAbsent(key, mine, ttlMs)
      if (first.kind === 'set') return admitted
      // Written by this class and by nobody else.
      const theirs = first.value as Entry
      const record = await this.#options.recordOf({ ...run, id: theirs.run })
      if (record === undefined) {
        // Its start is under way on another node, or has failed half-way and will never come.
        if (Date.now() - theirs.at < this.#options.patienceMs) await new Promise<void>((resolve) => { setTimeout(resolve, POLL_MS).unref() })
        else if (await this.#replace(key, theirs, mine)) return admitted
        continue
      }
      const kind = meaningOf(theirs, record, idempotency)
      if (kind !== 'new') return { kind, record }
      // Should this start fail, the recorded run is still what its own request finds.
      if (await this.#replace(key, theirs, mine)) return { kind: 'admitted', withdraw: async () => { await this.#replace(key, mine, theirs) } }
    }
  }

  async #replace (key: KvKey, theirs: Entry, mine: Entry): Promise<boolean> {
    const { kv, ttlMs } = this.#options
    const result = await kv.compareAndSet(key, theirs, mine, ttlMs)
    return result.kind === 'set'
  }
}

function keyOf (owner: Owner, protocol: string, { key }: Idempotency): KvKey {
  return { owner, space: `dedupe ${protocol}`, key }
}

/** What a start means to the run that is recorded under its key. */
function meaningOf (theirs: Entry, record: RunRecord, { fingerprint, onOther }: Idempotency): 'existing' | 'conflict' | 'new' {
  if (theirs.fingerprint === fingerprint) return 'existing'
  return onOther !== 'new-unless-active' || record.state === 'pending' || record.state === 'running' ? 'conflict' : 'new'
}
