import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type Readable, type Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { type Gates } from '../../../../lib/runs/gate.ts'
import { SILENT } from '../../../../lib/runs/logger.ts'
import { type RunProtocol } from '../../../../lib/runs/protocol.ts'
import { Reaper } from '../../../../lib/runs/reaper.ts'
import { lmdbStore } from '../../../../lib/stores/lmdb/index.ts'
import { type RunRecord, type Store } from '../../../../lib/stores/index.ts'
import { payloadOf } from '../../../fixtures/lmdb-payload.ts'
import { dataDir } from '../../../helpers/data-dir.ts'
import { transpiled } from '../../../helpers/transpiled.ts'

const KILLS = 100
/** On a machine that is busy with other things, as many as fit. */
const BOUND_MS = 75_000
const owner = { id: 'ann' }
const protocol = { name: 'fake', lost: () => [{ data: '"lost"' }] } as unknown as RunProtocol // all that a reaper asks of one
const gates = { leave: async () => {} } as unknown as Gates

/** A process that has loaded everything and waits for its turn. */
function born (script: URL, path: string, life: number): ChildProcessByStdio<Writable, Readable, null> {
  return spawn(process.execPath, [fileURLToPath(script), path, `${life}`, `${clock(life)}`], { stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: process.env['PATH'] } })
}

/** Lets it write until it is killed, some lines after it began; what it said is all that it may be held to. */
async function live (child: ChildProcessByStdio<Writable, Readable, null>, lines: number): Promise<readonly string[]> {
  const exit = once(child, 'exit')
  const said: string[] = []
  child.stdin.write('go\n')
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(line)
    if (said.length === lines) child.kill('SIGKILL')
  }
  await exit
  return said
}

/** Each life begins when all leases of the one before it have run out. */
function clock (life: number): number {
  return life * 10_000
}

async function runsOf (store: Store, life: number): Promise<readonly RunRecord[]> {
  const { runs } = await store.index.list(owner, { limit: 500 })
  return runs.filter(({ key }) => key.id.startsWith(`${life}-`))
}

/** What is wrong in the store after a life that said this. */
async function faultsOf (store: Store, life: number, said: readonly string[]): Promise<readonly string[]> {
  const faults: string[] = []
  const check = (isRight: boolean, fault: string): void => { if (!isRight) faults.push(fault) }
  for (const record of await runsOf(store, life)) {
    const page = await store.log.read(record.key, 0, 10_000)
    const wanted = page?.events.map(({ seq }) => ({ seq, data: payloadOf(record.key.id, seq) }))
    check(JSON.stringify(page?.events) === JSON.stringify(wanted), `${record.key.id}: events are not as written`)
    check(page?.events.length === page?.last, `${record.key.id}: its log has a hole`)
    check(JSON.stringify(record.input) === JSON.stringify(['x'.repeat(2_000)]), `${record.key.id}: half a record`)
  }
  for (const line of said) {
    const [what, id, number] = line.split(' ')
    if (what === 'ready') continue
    const key = { owner, protocol: 'fake', id: `${id}` }
    const record = await store.runs.get(key)
    const last = (await store.log.read(key, 0, 1))?.last ?? -1
    if (what === 'appended') check(last >= Number(number), `${line}: the log ends at ${last}`)
    if (what === 'ended') check(record?.state === 'completed' && last === Number(number), `${line}: ${record?.state} at ${last}`)
    if (what === 'waits') {
      const open = await store.interrupts.list(key)
      check(record?.state === 'waiting' && record.version === Number(number) && open[0]?.state === 'open', `${line}: ${record?.state} ${record?.version}`)
    }
  }
  return faults
}

t.test(`loses nothing acknowledged when it is killed, ${KILLS} times`, { timeout: 110_000 }, async (t) => {
  const path = await dataDir(t)
  const script = await transpiled(t, new URL('../../../fixtures/lmdb-writer.ts', import.meta.url))
  const startedAt = performance.now()
  let next = born(script, path, 1)
  t.teardown(() => { next.kill('SIGKILL') })
  let said = 0
  let life = 0
  const faults: string[] = []
  const states = new Set<string>()
  while (life < KILLS && performance.now() - startedAt < BOUND_MS) {
    const child = next
    life++
    next = born(script, path, life + 1)
    const lines = await live(child, 1 + (life * 37) % 90)
    said += lines.length
    const store = await lmdbStore({ path, now: () => Date.now() + clock(life + 1) })
    try {
      faults.push(...await faultsOf(store, life, lines))
      const before = waitingOf(await runsOf(store, life))
      await new Reaper({ store, gates, logger: SILENT, node: 'reaper', leaseMs: 1_000, protocols: new Map([['fake', protocol]]), onReaped: async () => {} }).sweep()
      const after = await runsOf(store, life)
      for (const { state } of after) states.add(state)
      if (JSON.stringify(waitingOf(after)) !== JSON.stringify(before)) faults.push(`life ${life}: what waits is not as it was`)
      for (const { key } of after) await store.runs.delete(key)
    } finally {
      await store.close()
    }
  }
  t.comment(`killed ${life} times, after ${said} acknowledgements`)
  t.same(faults, [])
  t.ok(life >= KILLS / 4 && said > life * 20, 'it was killed often, and while it wrote')
  t.same([...states].sort(), ['completed', 'lost', 'waiting'], 'nothing runs for ever')
})

function waitingOf (runs: readonly RunRecord[]): readonly RunRecord[] {
  return runs.filter(({ state }) => state === 'waiting')
}
