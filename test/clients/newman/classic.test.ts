// The classic agentprotocol.ai v1 routes, driven by newman as its own compliance suite is.
import { fileURLToPath } from 'node:url'
import newman, { type NewmanRunSummary } from 'newman'
import t from 'tap'
import { textAgent } from '../../../lib/agent/index.ts'
import { serveTasks } from '../../helpers/task-app.ts'

t.test('newman\'s 12 requests and 27 assertions pass', async (t) => {
  const { port } = await serveTasks(t, { agent: textAgent(() => 'Washington') })
  const fixture = (path: string): string => fileURLToPath(new URL(`../../fixtures/${path}`, import.meta.url))
  const summary = await new Promise<NewmanRunSummary>((resolve, reject) => {
    newman.run({
      collection: fixture('agentprotocol-v1.postman.json'),
      envVar: [{ key: 'url', value: `http://127.0.0.1:${port}` }],
      workingDir: fixture('newman')
    }, (error, result) => {
      if (error === null) resolve(result)
      else reject(error)
    })
  })
  t.strictSame(summary.run.failures.map(({ source, error }) => `${String(source?.name)}: ${error.message}`), [])
  t.match(summary.run.stats, { requests: { total: 12, failed: 0 }, assertions: { total: 27, failed: 0 } })
})
