import { seededRandom } from '../faulty/random.ts'
import { barrierCases } from './barriers.ts'
import { durabilityCases } from './durability.ts'
import { gateCases } from './gates.ts'
import type { Cases, ConformanceTest, OpenStore, StoreBackend } from './harness.ts'
import { idCases } from './ids.ts'
import { interruptCases } from './interrupts.ts'
import { kvCases } from './kv.ts'
import { leaseCases } from './leases.ts'
import { logCases } from './log.ts'
import { type Command, COMMANDS, differences } from './model.ts'
import { nodeCases } from './nodes.ts'
import { ownerCases } from './owners.ts'
import { indexCases } from './run-index.ts'
import { runCases } from './runs.ts'
import { signalCases } from './signals.ts'

export type { ConformanceTest, OpenStore, StoreBackend }
export { type Command, COMMANDS, differences }

/** Random sequences of commands of two nodes, compared with a model. */
const modelCases: Cases = Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8].map((seed) => [
  `agrees with the model on two nodes that do as they please, sequence ${seed}`,
  async (t, bench) => { t.same(await differences(bench, commandsOf(seed)), []) }
] satisfies [string, Cases[string]]))

const groups: Readonly<Record<string, Cases>> = {
  runs: runCases,
  barriers: barrierCases,
  log: logCases,
  leases: leaseCases,
  nodes: nodeCases,
  interrupts: interruptCases,
  gates: gateCases,
  'small values': kvCases,
  index: indexCases,
  signals: signalCases,
  owners: ownerCases,
  ids: idCases,
  durability: durabilityCases,
  model: modelCases
}

/**
 * Registers the suite that every backend passes: each case opens a store of its own, works on it by its two connections, and closes it. The
 * backend's clock is moved by the suite (`advance`), so that nothing in it waits or depends on how fast the machine is.
 *
 * To check the promises about retries as well, hand in a store that loses acknowledgements and repeats what `STORE_OPERATIONS` calls repeatable:
 * every case holds for it all the same.
 */
export async function storeConformance (t: ConformanceTest, backend: StoreBackend): Promise<void> {
  for (const [group, cases] of Object.entries(groups)) {
    await t.test(`${backend.name}, ${group}`, async (t) => {
      for (const [name, run] of Object.entries(cases)) {
        await t.test(name, async (t) => {
          const open = await backend.open()
          try {
            await run(t, { ...open, peer: open.peer ?? open.store })
          } finally {
            await open.close()
          }
        })
      }
    })
  }
}

/** A sequence of commands, the same for the same seed. */
function commandsOf (seed: number): readonly Command[] {
  const random = seededRandom(seed)
  const pick = (count: number) => Math.floor(random() * count)
  const commands: Command[] = [{ does: 'create', node: 0, n: 0 }]
  while (commands.length < 150) commands.push({ does: COMMANDS[pick(COMMANDS.length)] as Command['does'], node: pick(2) as 0 | 1, n: pick(1_000) }) // within the lists
  return commands
}
