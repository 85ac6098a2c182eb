import type { NewRun, RunPatch, RunRecord } from '../run-store.ts'
import { frozen } from './frozen.ts'
import { type RECORD_FIELDS } from './scripts/record.ts'

/** Names and values of a hash, in turn. An empty value removes the field. */
export type FieldList = readonly string[]

/** The fields a patch may name, and those of the hash. */
const PATCH_FIELDS = {
  endedAt: 'ea', expiresAt: 'xa', end: 'e', links: 'li', detail: 'd', input: 'i', fingerprint: 'fp', bytes: 'by'
} as const satisfies { readonly [Field in Exclude<keyof RunPatch, 'state'>]-?: typeof RECORD_FIELDS[number] }

/** What a new run's hash holds beside what its script writes. */
export function fieldsOfNew (run: NewRun, node: string): FieldList {
  const { session, clientId, state, detail, fingerprint, input, links, bytes, ...rest } = run
  return [
    'k', JSON.stringify(rest), 'ss', JSON.stringify(session), 'c', JSON.stringify(clientId), 's', state, 'n', JSON.stringify(node),
    ...fieldsOfPatch(Object.fromEntries(Object.entries({ detail, fingerprint, input, links, bytes }).filter(([, value]) => value !== undefined)))
  ]
}

/** What a patch writes, but for the state. */
export function fieldsOfPatch (patch: RunPatch): FieldList {
  const fields: string[] = []
  for (const name of Object.keys(PATCH_FIELDS) as (keyof typeof PATCH_FIELDS)[]) {
    if (name in patch) fields.push(PATCH_FIELDS[name], patch[name] === undefined ? '' : JSON.stringify(patch[name]))
  }
  return fields
}

/** Whether a patch says how a run ends: never twice. */
export function endsRun (patch: RunPatch): boolean {
  return 'state' in patch || 'end' in patch || 'endedAt' in patch
}

/** The record that a script or `HMGET` of `RECORD_FIELDS` has answered; `undefined` where there is none. */
export function parseRecord (values: readonly (string | null)[]): RunRecord | undefined {
  const [k, ss, c, s, v, f, n, q, p, u, ea, xa, e, li, d, i, fp, by] = values
  if (typeof k !== 'string') return undefined
  return frozen({
    ...parse(k) as object, // key, agent and what else never changes
    clientId: parse(c),
    session: parse(ss),
    state: s,
    ...fp != null && { fingerprint: parse(fp) },
    detail: parse(d),
    ...i != null && { input: parse(i) },
    ...li != null && { links: parse(li) },
    ...by != null && { bytes: parse(by) },
    version: Number(v),
    fence: Number(f),
    node: parse(n),
    lastSeq: Number(q),
    firstSeqByFence: parse(p),
    updatedAt: Number(u),
    ...ea != null && { endedAt: parse(ea) },
    ...xa != null && { expiresAt: parse(xa) },
    ...e != null && { end: parse(e) }
  }) as unknown as RunRecord // each field as it was written
}

function parse (json: string | null | undefined): unknown {
  return JSON.parse(json ?? 'null')
}
