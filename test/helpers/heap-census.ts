import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeHeapSnapshot } from 'node:v8'

/** What a program makes, as against what V8 makes of the program: code, feedback, its own lists. */
const KINDS: ReadonlySet<string> = new Set(['object', 'closure', 'array', 'string', 'concatenated string', 'sliced string', 'regexp', 'native', 'number', 'bigint', 'symbol'])

interface HeapSnapshot {
  readonly snapshot: { readonly meta: { readonly node_fields: readonly string[], readonly node_types: readonly [readonly string[], ...unknown[]] } }
  readonly nodes: readonly number[]
  readonly strings: readonly string[]
}

/** How many of each kind of thing are reachable: `object Run`, `closure onDrain`, `string`. */
export type Census = ReadonlyMap<string, number>

/**
 * A picture of the heap, taken after a collection of its own. Keep it until all are taken: to count is to make objects.
 *
 * Counting objects tells a leak from a program that warms up: in the first thousands of requests V8 adds megabytes of code, and after
 * them the heap still changes by some hundred kilobytes either way, while a leak of one object a request shows at once.
 */
export class HeapPicture {
  readonly #folder = mkdtempSync(join(tmpdir(), 'heap-'))
  readonly #file = writeHeapSnapshot(join(this.#folder, 'it.heapsnapshot'))

  /** Counts what is on it, and throws the picture away. */
  count (): Census {
    const { snapshot: { meta }, nodes, strings } = JSON.parse(readFileSync(this.#file, 'utf8')) as HeapSnapshot
    rmSync(this.#folder, { recursive: true })
    const [kinds] = meta.node_types
    const kindAt = meta.node_fields.indexOf('type')
    const nameAt = meta.node_fields.indexOf('name')
    const census = new Map<string, number>()
    for (let index = 0; index < nodes.length; index += meta.node_fields.length) {
      const kind = kinds[nodes[index + kindAt] as number] ?? ''
      if (!KINDS.has(kind)) continue
      const name = kind === 'object' || kind === 'closure' || kind === 'native' ? `${kind} ${strings[nodes[index + nameAt] as number]}` : kind
      census.set(name, (census.get(name) ?? 0) + 1)
    }
    return census
  }
}

/** What has become more by at least so many, most of it first. */
export function grownBy (before: Census, after: Census, atLeast: number): readonly (readonly [name: string, by: number])[] {
  return [...after]
    .map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const)
    .filter(([, by]) => by >= atLeast)
    .sort(([, a], [, b]) => b - a)
}
