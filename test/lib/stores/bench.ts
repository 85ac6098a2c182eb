import type { NewInterrupt, NewRun, RunKey, RunRecord, Store } from 'fastify-agents/stores'

let count = 0

/** A clock that stands still until it is moved. */
export class Clock {
  time = 1_700_000_000_000
  readonly now = (): number => this.time
}

/** Creates a run with its index entry. */
export async function start (store: Store, fields: Partial<NewRun> & { readonly id?: string } = {}): Promise<RunRecord> {
  const { id = `run-${++count}`, ...rest } = fields
  const run: NewRun = {
    key: { owner: {}, protocol: 'fake', id },
    clientId: id,
    session: 's',
    agent: 'a',
    state: 'running',
    epoch: id,
    createdAt: count,
    detail: {},
    ...rest
  }
  await store.index.add({ key: run.key, clientId: run.clientId, session: run.session, createdAt: run.createdAt })
  return (await store.runs.create(run, { node: 'n', op: `create ${id}`, ms: 10_000 })).record
}

/** Ends a run. */
export async function finish (store: Store, { key, version, fence }: RunRecord): Promise<void> {
  await store.runs.update(key, { version, fence }, { state: 'completed' })
}

/** The ids of these keys whose runs are there. */
export async function present (store: Store, keys: readonly RunKey[]): Promise<readonly string[]> {
  const records = await Promise.all(keys.map((key) => store.runs.get(key)))
  return records.flatMap((record) => record?.key.id ?? [])
}

/** An interrupt to open. */
export function interrupt (id: string): NewInterrupt {
  return { id, kind: 'confirm', pending: { kind: 'confirm', replyId: 'r', toolCall: { type: 'tool_use', id, name: 'write', input: {} } }, createdAt: 1 }
}
