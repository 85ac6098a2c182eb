import { createHash } from 'node:crypto'
import { type Owner, ownerText, type RunKey, runKeyText } from '../run-key.ts'
import type { SignalChannel } from '../signals.ts'

/** Keys of one run, all in one slot: record, log, interrupts, presence. */
export type RunKeys = readonly [record: string, log: string, interrupts: string, presence: string]

/** Keys of one index entry of a run, all in its owner's slot: the owner's, the session's and the client id's list, and the checks. */
export type IndexKeys = readonly [all: string, session: string, client: string, checks: string]

/** Keys of one session's gate, in its owner's slot: order, expiry, data. */
export type GateKeys = readonly [order: string, expiry: string, data: string]

/**
 * Names of keys (R20). What stands in braces decides the slot in a cluster: a run's keys share one, an owner's keys share one. Ids of
 * others never get into a name, only their hashes.
 */
export class Keys {
  readonly #prefix: string
  /** Tags of records' own `key` objects, which are frozen and come back with each append. */
  readonly #tags = new WeakMap<RunKey, string>()

  constructor (prefix: string) {
    this.#prefix = prefix
  }

  run (key: RunKey): RunKeys {
    const tag = this.#runTag(key)
    return [this.#name('r', tag), this.#name('l', tag), this.#name('i', tag), this.#name('p', tag)]
  }

  index (owner: Owner, protocol: string, session: string, clientId: string): IndexKeys {
    return [this.ownerList(owner), this.sessionList(owner, protocol, session), this.clientList(owner, protocol, clientId), this.#name('t', ownerTag(owner))]
  }

  ownerList (owner: Owner): string {
    return this.#name('o', ownerTag(owner))
  }

  sessionList (owner: Owner, protocol: string, session: string): string {
    return this.#name('s', ownerTag(owner), protocol, session)
  }

  clientList (owner: Owner, protocol: string, clientId: string): string {
    return this.#name('c', ownerTag(owner), protocol, clientId)
  }

  /** Runs of a session that may wait for answers. */
  waiting (owner: Owner, protocol: string, session: string): string {
    return this.#name('w', ownerTag(owner), protocol, session)
  }

  gate (owner: Owner, session: string): GateKeys {
    const tag = ownerTag(owner)
    return [this.#name('g', tag, session), this.#name('e', tag, session), this.#name('d', tag, session)]
  }

  value (owner: Owner, space: string, key: string): string {
    return this.#name('v', ownerTag(owner), space, key)
  }

  /** Leases of one protocol's runs, by the time at which they run out. */
  leases (protocol: string): string {
    return this.#name('x', `{${hash(JSON.stringify(protocol))}}`)
  }

  /** Nodes to which runs of a protocol are bound. */
  boundNodes (protocol: string): string {
    return this.#name('b', `{${hash(JSON.stringify(protocol))}}`)
  }

  /** Runs of a protocol that are bound to a node; in the slot of `boundNodes`. */
  boundRuns (protocol: string, node: string): string {
    return this.#name('m', `{${hash(JSON.stringify(protocol))}}`, node)
  }

  /** There as long as the node beats. */
  heartbeat (node: string): string {
    return this.#name('n', `{${hash(JSON.stringify(node))}}`)
  }

  channel (channel: SignalChannel): string {
    switch (channel.kind) {
      case 'run': return this.#name('sr', this.#runTag(channel.key))
      case 'node': return this.#name('sn', `{${hash(JSON.stringify(channel.node))}}`)
      case 'gate': return this.#name('sg', ownerTag(channel.owner), channel.session)
    }
  }

  #runTag (key: RunKey): string {
    const known = this.#tags.get(key)
    if (known !== undefined) return known
    const tag = `{${hash(runKeyText(key))}}`
    if (Object.isFrozen(key) && Object.isFrozen(key.owner)) this.#tags.set(key, tag)
    return tag
  }

  #name (kind: string, tag: string, ...ids: readonly string[]): string {
    return ids.length === 0 ? `${this.#prefix}${kind}:${tag}` : `${this.#prefix}${kind}:${tag}:${hash(JSON.stringify(ids))}`
  }
}

function ownerTag (owner: Owner): string {
  return `{${hash(ownerText(owner))}}`
}

/** 160 bits of SHA-256: nobody finds two ids with the same one. */
function hash (text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 27)
}
