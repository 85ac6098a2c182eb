import t from 'tap'
import { FaultPlan, faultyStore, memoryStore } from '../../../lib/stores/index.ts'
import { serveApp } from '../../helpers/ag-ui-app.ts'
import { steered } from '../../helpers/steered-agent.ts'
import { liveClients } from './live.ts'

for (const { version, open } of liveClients) {
  t.test(`client ${version} takes a goodbye without an end for a stream that ended, and complains about none of its bytes`, async (t) => {
    const plan = new FaultPlan()
    const store = memoryStore()
    t.teardown(async () => {
      plan.heal()
      await store.close()
    })
    const agent = steered()
    const first = await serveApp(t, { agent, store: { ...faultyStore(store, plan), close: async () => {} }, host: { shutdownMs: 100, storeTimeoutMs: 50, leaseMs: 1_000 } })
    const session = open(`http://127.0.0.1:${first.port}/agui/run`, 'thread', [{ id: 'u1', role: 'user', content: 'Hi' }])
    const heard = session.seen(({ type }) => type === 'TEXT_MESSAGE_CONTENT')
    // Whether a stream without an end is an error is the client's own affair: that it is one must not come from our bytes.
    const running = session.run({ runId: 'run' }).then(() => undefined, (error: Error) => error.message)
    const run = await agent.next()
    run.say('before')
    await heard
    plan.hold('*')
    await first.app.close()
    t.notMatch(String(await running), /pars|JSON|syntax|invalid/i)
    t.strictSame(session.warnings.filter((warning) => /pars|JSON|syntax|retry/i.test(String(warning))), [])
    t.match(session.events.map(({ type }) => type), ['RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT'])
    t.strictSame(session.errors, [])
  })
}
