import { type Owner } from '../../../../lib/stores/index.ts'
import { type Known } from './known.ts'
import { type World } from './world.ts'

/** Owners that have nothing; some are spelled from the parts of those that have. */
const FOREIGNERS: readonly Owner[] = [{ id: 'b' }, { id: 't' }, { tenant: 'a' }, { tenant: 't' }, { tenant: 't', id: 'b' }, { tenant: 'a', id: 't' }]

/** R20: to somebody else a run answers, in every call, as one that never was. */
export function pry (world: World, { spec, run, label }: Known): void {
  const { engine, memory } = world
  const { protocol, session, clientId } = spec
  for (const owner of FOREIGNERS) {
    const expectNothing = (what: string) => (answer: unknown): void => {
      const isNothing = answer === undefined || answer === 'unknown' || (Array.isArray(answer) && answer.length === 0)
      if (!isNothing) world.problems.push(`${what} ${label} tells ${JSON.stringify(owner)} ${JSON.stringify(answer)}`)
    }
    world.call('finding', () => engine.find(owner, protocol.name, clientId), expectNothing('finding'))
    world.call('finding', () => engine.find(owner, protocol.name, clientId, session), expectNothing('finding'))
    world.call('finding', () => engine.find(owner, protocol.name, run.record.key.id), expectNothing('finding'))
    world.call('rejoining', () => engine.findByEpoch(owner, protocol.name, session, run.topic.epoch), expectNothing('rejoining'))
    world.call('looking', () => engine.lastOf(owner, protocol.name, session), expectNothing('looking at the session of'))
    world.call('listing', async () => (await engine.list(owner, { limit: 100 })).runs, expectNothing('listing'))
    world.call('listing', async () => (await engine.list(owner, { protocol: protocol.name, session, limit: 100 })).runs, expectNothing('listing'))
    world.call('asking', () => engine.openInterrupts(owner, protocol.name, session), expectNothing('asking'))
    world.call('stopping', () => engine.stopSession(owner, protocol.name, session), expectNothing('stopping the session of'))
    world.call('stopping', () => engine.stopSession(owner, protocol.name, session, clientId), expectNothing('stopping'))
    const answering = async (): Promise<string> => {
      const ids = (await memory.interrupts.list(run.record.key)).map(({ id }) => id)
      const result = await engine.start({ ...spec, owner, resumes: { interrupts: ids.length > 0 ? ids : ['made-up'], decisions: [] } })
      return result.kind === 'interrupts' ? `${result.kind} ${result.problem.kind} ${result.problem.open.length} ${result.problem.missing.length}` : result.kind
    }
    world.call('answering', answering, (answer) => {
      if (answer !== 'interrupts none-open 0 0') world.problems.push(`answering ${label} tells ${JSON.stringify(owner)} ${answer}`)
    })
  }
}
