import { Bench } from './bench.ts'
import { type Peer } from './peer.ts'
import { type Size, Unfinished, type Workload } from './workload.ts'

/** What one peer did in one repetition. */
export type Trial =
  | { readonly kind: 'measured', readonly figures: Readonly<Record<string, number>> }
  | { readonly kind: 'unfinished', readonly reason: string }

/** Measures once, in fresh processes; they are gone when it resolves. */
export async function tryOnce (workload: Workload, peer: Peer, size: Size): Promise<Trial> {
  const bench = await Bench.start({ peer: peer.name, setup: { ...workload.setup(size), workload: workload.id } })
  try {
    return { kind: 'measured', figures: await workload.measure(bench, size) }
  } catch (error) {
    if (error instanceof Unfinished) return { kind: 'unfinished', reason: error.message }
    throw error
  } finally {
    await bench.stop()
  }
}
