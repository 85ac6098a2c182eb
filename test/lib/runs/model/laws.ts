import { type RunEngine } from '../../../../lib/runs/index.ts'
import { isEnded, type Owner, type RunRecord } from '../../../../lib/stores/index.ts'
import { envelope } from '../../../helpers/envelope-protocol.ts'
import { ledger } from '../../../helpers/ledger-protocol.ts'
import { specOf } from '../../../helpers/run-specs.ts'
import { agentOf } from '../../../helpers/run-engine.ts'
import { type Known } from './known.ts'
import { Listener } from './listener.ts'
import { type World } from './world.ts'

interface Line { readonly kind?: string, readonly end?: string, readonly error?: string, readonly code?: string }

/** What has to hold once everything is over, whatever happened. `engine` serves the store now. */
export async function check (world: World, engine: RunEngine): Promise<string[]> {
  const problems = [...world.problems]
  for (const known of world.known) {
    for await (const problem of ofRun(world, engine, known)) problems.push(`${known.label} ${problem}`)
  }
  const owners = new Set(world.known.map(({ spec: { owner } }) => owner))
  for (const owner of owners) for await (const problem of ofOwner(world, engine, owner)) problems.push(`${JSON.stringify(owner)}: ${problem}`)
  // R21: at most once.
  for (const [id, count] of world.executed) if (count > 1) problems.push(`${id} was executed ${count} times`)
  return problems
}

async function * ofRun (world: World, engine: RunEngine, known: Known): AsyncGenerator<string> {
  const { memory } = world
  const { run, spec, watcher } = known
  const { key } = run.record
  const record = await memory.runs.get(key)
  if (record === undefined) { yield 'is gone'; return }
  // R2, R3: over, or waiting: for the session's next run, or for a node that can make its agent again.
  if (!isEnded(record.state) && record.state !== 'waiting') yield `is ${record.state}`
  if (known.isGivenUp && world.isCalm) yield 'was given up although nothing has failed'

  const page = await memory.log.read(key, 0, 100_000)
  const log = page?.events ?? []
  const first = page?.oldest ?? 1
  const seen = new Map(watcher.heard.flatMap((item) => item.kind === 'line' ? [[item.seq, item.data] as const] : []))
  const stored = new Map(log.map(({ seq, data }) => [seq, data]))
  // R6: dense, for who sees it all and in the store.
  if ([...seen.keys()].some((seq, index) => seq !== index + 1)) yield `was seen as ${[...seen.keys()].join()}`
  if (log.some(({ seq }, index) => seq !== first + index)) yield `is stored as ${log.map(({ seq }) => seq).join()}`
  // R1, R3: what was told is what is stored. What another owner has written begins where the first had stored to.
  const fenced = record.end?.kind === 'lost' || known.isGivenUp ? record.firstSeqByFence.at(-1)?.[1] ?? 1 : Infinity
  // A run that lost its log between storing and telling (somebody was faster with the answer) has told less.
  const isTold = (seq: number): boolean => !known.isGivenUp || seen.has(seq)
  for (const [seq, data] of stored) if (seq < fenced && isTold(seq) && seen.get(seq) !== data) yield `stores ${data.slice(0, 80)} as ${seq}, and told ${seen.get(seq)?.slice(0, 80)}`
  if (!known.isGivenUp && record.end?.kind !== 'lost' && watcher.seq !== page?.last) yield `told ${watcher.seq} of ${page?.last}`

  // One terminal, last; a pause is followed by another execution, by the end of the run, or by nothing.
  const lines = log.map(({ data }) => JSON.parse(data) as Line)
  const terminals = lines.flatMap((line, index) => isTerminal(line) ? [index] : [])
  const hasTerminal = record.state !== 'waiting' || spec.protocol === envelope
  if (hasTerminal && (terminals.length !== 1 || terminals[0] !== lines.length - 1)) yield `has terminals at ${terminals.join()} of ${lines.length}`
  for (const [index, line] of lines.entries()) {
    const next = lines[index + 1]
    if (line.kind === 'asks' && next !== undefined && next.kind !== 'started' && !isTerminal(next)) yield `goes on after a pause with ${JSON.stringify(next)}`
  }

  // Everybody heard what follows their cursor, and nothing else.
  for (const listener of known.everybody) {
    for (const problem of listener.problems(seen)) yield `was misheard: ${problem}`
    if (listener.isOpen && (isEnded(record.state) || spec.protocol === envelope)) yield 'has left somebody listening'
    if (listener.isOpen || listener.hasLeft || listener === watcher || known.isGivenUp) continue
    if (listener.end === 'complete' && listener.level === 'verbose' && listener.seq !== watcher.seq) yield `ended for somebody at ${listener.seq} of ${watcher.seq}`
  }
  // R3: a promise that anybody has heard is stored, but for the one that says that nothing is.
  for (const [seq, data] of seen) {
    const line = JSON.parse(data) as Line
    const isUnstored = line.code === 'STORE_UNAVAILABLE' || line.error === 'STORE_UNAVAILABLE'
    if ((isTerminal(line) || line.kind === 'asks') && !isUnstored && seq >= first && stored.get(seq) !== data) yield `promised ${data}`
  }

  // What nobody has heard of may be folded all the same, and what is trimmed has been told.
  yield * ofFold(world, known, new Map([...seen, ...stored]), first)

  // R21: nothing stays claimed, nothing of an ended run stays open.
  for (const { id, state } of await memory.interrupts.list(key)) {
    if (state === 'claimed') yield `leaves ${id} claimed`
    // An answer whose run never reached its agent was none: the question is open again, beside the record of the pause.
    if (state === 'open' && isEnded(record.state) && record.end?.kind !== 'resumed') yield `leaves ${id} open`
  }
  // A made instance lives as long as its run.
  if (engine === world.engine && (isEnded(record.state) || known.step.agent === 'restored')) {
    for (const { closed, executions } of world.made.get(known.label) ?? []) if (closed !== 1 && executions.length > 0) yield `closed its agent ${closed} times`
  }
  // R20: its owner finds it.
  const found = await engine.find(spec.owner, spec.protocol.name, spec.clientId, spec.session)
  if (found?.record.key.id !== key.id) { yield `is found as ${found?.record.key.id}`; return }
  // R1: a cursor of what was told and never stored is answered by a gap, never taken for what is stored in its place.
  if (!found.topic.isEnded && record.state !== 'waiting') return
  for (const [seq, data] of seen) {
    if (stored.get(seq) === undefined || stored.get(seq) === data) continue
    const back = new Listener(found, { isWatching: true, after: seq, epoch: run.topic.epochAt(seq) })
    if (back.heard[0]?.kind !== 'gap') yield `takes the cursor of ${data.slice(0, 80)} for one of ${stored.get(seq)?.slice(0, 80)}`
    back.leave()
  }
}

/** R12: what is folded is what is stored, and nothing is trimmed before it is folded. */
async function * ofFold ({ memory }: World, known: Known, events: ReadonlyMap<number, string>, oldest: number): AsyncGenerator<string> {
  const { run, spec } = known
  if (spec.protocol !== ledger || ledger.fold === undefined) return
  const { fold } = ledger
  const foldTo = (seq: number): unknown => {
    let state = fold.initial(run.record)
    for (let one = 1; one <= seq; one++) state = fold.step(state, { seq: one, data: events.get(one) ?? '{}' })
    return state
  }
  const saved = await memory.log.loadFold(run.record.key)
  if (oldest > (saved?.seq ?? 0) + 1) yield `has trimmed to ${oldest}, folded to ${saved?.seq ?? 0}`
  if (saved !== undefined && saved.state !== JSON.stringify(foldTo(saved.seq))) yield `has folded ${JSON.stringify(saved)}`
  if (known.isGivenUp) return
  const snapshot = run.snapshot()
  if (snapshot?.seq !== run.topic.stored) yield `shows a snapshot of ${snapshot?.seq}, and has stored ${run.topic.stored}`
  const shown = snapshot?.events[0]?.data
  if (shown !== fold.snapshot(foldTo(run.topic.stored) as never, run.record)[0]?.data) yield `shows ${shown?.slice(0, 200)}`
}

async function * ofOwner ({ memory, clock, known }: World, engine: RunEngine, owner: Owner): AsyncGenerator<string> {
  // Whatever a failed start has left is over as well.
  const { runs } = await memory.index.list(owner, { limit: 1_000 })
  const waiting = runs.filter(({ state }) => state === 'waiting')
  for (const { state, clientId } of runs) if (!isEnded(state) && state !== 'waiting') yield `${clientId} was left ${state}`
  // R19: free afterwards, but for who waits and keeps it.
  for (const session of ['s0', 's1']) {
    const holder = await memory.gates.holder(owner, session)
    const keepers = waiting.filter(({ key, session: own }) => own === session && key.protocol === 'ledger').map(({ key }) => key.id)
    if (holder !== undefined && !keepers.includes(holder.id)) yield `${session} is held by ${JSON.stringify(holder)}`
    if (holder !== undefined || keepers.length > 0) continue
    const next = specOf(agentOf(async function * () {}), { owner, session, clientId: 'next', requireResume: false })
    const result = await clock.until(engine.start(next), 1_000, `the next run of ${session}`)
    if (result.kind !== 'started') { yield `${session} does not take another run: ${result.kind}`; continue }
    const { state } = await clock.until(result.run.ended, 1_000, `the end of the next run of ${session}`)
    if (state !== 'completed') yield `the next run of ${session} is ${state}`
  }
  // R20: what is found under this owner is this owner's.
  for (const { key } of runs) if (JSON.stringify(key.owner) !== JSON.stringify(owner)) yield `${key.id} is of ${JSON.stringify(key.owner)}`
  for (const { run, spec } of known) {
    const isMine = runs.some(({ key }: RunRecord) => key.id === run.record.key.id)
    if (isMine !== (spec.owner === owner)) yield `${run.record.key.id} is ${isMine ? '' : 'not '}listed`
  }
}

function isTerminal ({ kind, end, error }: Line): boolean {
  return kind === 'success' || kind === 'error' || kind === 'cancelled' || end !== undefined || (kind === undefined && error !== undefined)
}
