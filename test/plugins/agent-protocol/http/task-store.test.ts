import { readdir } from 'node:fs/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { type Agent } from '../../../../lib/agent/index.ts'
import { memoryStore } from '../../../../lib/stores/index.ts'
import { agentProtocol, publishArtifactKey } from '../../../../plugins/agent-protocol/index.ts'
import { agents } from '../../../../plugins/agents/index.ts'
import { dataDir } from '../../../helpers/data-dir.ts'
import { agentOf } from '../../../helpers/run-engine.ts'

const writer: Agent = agentOf(async function * (_, context) {
  await context.get(publishArtifactKey)?.({ path: 'a.txt', body: 'kept' })
  yield { type: 'TEXT_BLOCK_DELTA', delta: 'written' }
})

t.test('with taskStorePath a plugin that stands alone keeps its tasks and their files in that directory', async (t) => {
  const taskStorePath = await dataDir(t)
  const first = await serve(t, taskStorePath)
  await first.inject({ method: 'POST', url: '/tasks', payload: { task_id: 't1', input: 'x' } })
  const told = (await first.inject('/tasks/t1/wait')).json()
  t.match(told, { status: 'success', result: 'written' })
  t.strictSame(await readdir(taskStorePath), ['runs', 'workspaces'])
  await t.rejects(serve(t, taskStorePath), { code: 'AGT_ERR_STORE_LOCKED' }, 'it is one process\'s')
  await first.close()
  const second = await serve(t, taskStorePath)
  t.strictSame((await second.inject('/tasks/t1/wait')).json(), told)
  const { artifacts } = (await second.inject('/tasks/t1/artifacts')).json() as { artifacts: { artifact_id: string, path: string }[] }
  t.strictSame(artifacts.map(({ path }) => path), ['a.txt', 'run.log'])
  t.equal((await second.inject(`/tasks/t1/artifacts/${artifacts[0]?.artifact_id ?? ''}`)).body, 'kept')
})

t.test('a taskStorePath beside another store is refused', async (t) => {
  const taskStorePath = await dataDir(t)
  const store = memoryStore()
  t.teardown(() => store.close())
  const alone = closing(t)
  await t.rejects(async () => await alone.register(agentProtocol, { agents: { writer }, taskStorePath, store }), { code: 'AGT_ERR_OPTION_INVALID', message: /taskStorePath/ })
  const shared = closing(t)
  await shared.register(agents, { agents: { writer } })
  await t.rejects(async () => await shared.register(agentProtocol, { taskStorePath }), { code: 'AGT_ERR_OPTION_INVALID', message: /`agents` plugin/ })
})

function closing (t: Test): FastifyInstance {
  const app = Fastify()
  t.teardown(() => app.close())
  return app
}

async function serve (t: Test, taskStorePath: string): Promise<FastifyInstance> {
  const app = closing(t)
  await app.register(agentProtocol, { agents: { writer }, taskStorePath })
  return app
}
