import { createHash } from 'node:crypto'
import { ownerText, type Owner } from '../stores/index.ts'

/** Characters of the hash: enough to tell the owners of one server apart. */
const LENGTH = 16

/**
 * What a log line says of an owner: a hash, so that an operator can follow one without knowing who it is. The same on every node. Nothing for the
 * one owner of a server that asks nobody.
 */
export function ownerField (owner: Owner): { readonly owner?: string } {
  if (owner.id === undefined && owner.tenant === undefined) return {}
  return { owner: createHash('sha256').update(ownerText(owner)).digest('base64url').slice(0, LENGTH) }
}
