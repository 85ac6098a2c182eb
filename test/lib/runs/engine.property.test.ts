import fc from 'fast-check'
import t from 'tap'
import { check } from './model/laws.ts'
import { die, settle } from './model/settle.ts'
import { calmStep, faultyStep, type Outage, type Step, stormyStep } from './model/steps.ts'
import { World } from './model/world.ts'

const RUNS = Number(process.env.PROPERTY_RUNS ?? 150)

/** Plays steps in a world of their own, then lets it come to its end; throws where a rule was broken. */
async function live (steps: readonly Step[], goneFor?: Outage): Promise<void> {
  const world = new World()
  try {
    for (const step of steps) await world.play(step)
    const engine = goneFor === undefined ? world.engine : await die(world, goneFor)
    if (goneFor === undefined) await settle(world)
    const problems = await check(world, engine)
    await world.clock.until(engine.close({ timeoutMs: 200 }), 2_000, 'closing')
    if (problems.length > 0) throw new Error([...new Set(problems)].slice(0, 12).join('\n'))
  } finally {
    world.clock.uninstall()
  }
}

const steps = (step: fc.Arbitrary<Step>): fc.Arbitrary<Step[]> => fc.array(step, { minLength: 3, maxLength: 60, size: 'max' })

t.test('whatever happens in whatever order, each run ends once and everybody saw what is stored', async () => {
  await fc.assert(fc.asyncProperty(steps(calmStep), (played) => live(played)), { numRuns: RUNS })
})

t.test('also when the store fails now and then, or loses an acknowledgement', async () => {
  await fc.assert(fc.asyncProperty(steps(faultyStep), (played) => live(played)), { numRuns: RUNS })
})

t.test('also when the store goes away for seconds or minutes, and comes back', async () => {
  await fc.assert(fc.asyncProperty(steps(stormyStep), (played) => live(played)), { numRuns: RUNS })
})

t.test('a store that goes away for good: every call ends, every run ends, its readers are told, and the next node finds all in order', async () => {
  const how = fc.constantFrom<Outage>('refuses', 'forgets', 'hangs')
  await fc.assert(fc.asyncProperty(steps(calmStep), how, (played, gone) => live(played, gone)), { numRuns: RUNS / 2 })
})
