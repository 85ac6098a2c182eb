import fc from 'fast-check'
import t from 'tap'
import { memoryStore, wrapStore, type Store } from 'fastify-agents/stores'
import { type Command, COMMANDS, differences } from 'fastify-agents/stores/conformance'
import { Clock } from './bench.ts'

const command: fc.Arbitrary<Command> = fc.record({
  does: fc.constantFrom(...COMMANDS), node: fc.constantFrom(0, 1), n: fc.nat(1_000)
})

async function run (commands: readonly Command[], wrap: (store: Store) => Store = (store) => store): Promise<readonly string[]> {
  const clock = new Clock()
  const store = memoryStore({ now: clock.now, endedTtlMs: 1e12 })
  const found = await differences({ store: wrap(store), advance: (ms) => { clock.time += ms }, close: () => store.close() }, commands)
  await store.close()
  return found
}

t.test('agrees with the model whatever two nodes do, in whatever order', async (t) => {
  await fc.assert(fc.asyncProperty(fc.array(command, { maxLength: 60, size: 'max' }), async (commands) => {
    t.same(await run([{ does: 'create', node: 0, n: 0 }, ...commands]), [])
  }), { numRuns: 300 })
})

t.test('agrees with the model where the run is never created', async (t) => {
  t.same(await run(COMMANDS.filter((does) => does !== 'create').map((does) => ({ does, node: 0, n: 1 }))), [])
})

t.test('sees a store that differs', async (t) => {
  const forgetful = (store: Store): Store => wrapStore(store, async (operation, call) => {
    const result = await call()
    return operation === 'log.read' ? { oldest: 1, last: 0, events: [] } as typeof result : operation === 'leases.renew' ? { kind: 'ok' } as typeof result : result
  })
  const found = await run([{ does: 'create', node: 0, n: 0 }, { does: 'append', node: 0, n: 0 }, { does: 'update', node: 0, n: 1 }, { does: 'renew', node: 1, n: 0 }], forgetful)
  t.same(found, [
    '3 renew: {"kind":"ok"} instead of {"kind":"lost","fence":1}',
    'the log: {"oldest":1,"last":0,"events":[]} instead of {"oldest":1,"last":1,"events":[{"seq":1,"data":"{\\"by\\":\\"0 1 1\\",\\"n\\":1}"}]}'
  ])
})
