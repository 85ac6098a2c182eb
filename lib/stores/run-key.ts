/**
 * Who a run belongs to. `{}` is the anonymous owner of a server without `getPrincipal`. An absent member and an empty string are
 * two different owners.
 */
export interface Owner {
  readonly tenant?: string
  readonly id?: string
}

/**
 * The address of one run. The owner is part of it, so that another owner's run can not even be asked for (R20).
 *
 * Everything that changes together with a run (record, lease, log, fold, interrupts, presence) lives under this one key: a backend
 * that shards by key keeps it on one shard, and each operation that takes a `RunKey` touches that shard only. Ids may hold any
 * character; a backend hashes or escapes them and never puts them into its own key text as they are.
 */
export interface RunKey {
  readonly owner: Owner
  /** The protocol that started the run (R13). */
  readonly protocol: string
  /** Ours, unique among all runs; never an id that a client chose (R2). */
  readonly id: string
}

/** One text for one owner, different for different owners whatever characters the ids hold. */
export function ownerText (owner: Owner): string {
  return JSON.stringify([owner.tenant ?? null, owner.id ?? null])
}

/** One text for one run key, different for different keys whatever characters the ids hold. For maps and hashes, not for display. */
export function runKeyText (key: RunKey): string {
  return JSON.stringify([key.owner.tenant ?? null, key.owner.id ?? null, key.protocol, key.id])
}
