// The classic agentprotocol.ai v1 routes, driven by newman as the protocol's own compliance suite is: the same 12 requests in the same order,
// GETs with bodies among them, and the same 26 assertions. A second folder asks for what that suite leaves out.
import { fileURLToPath } from 'node:url'
import newman, { type NewmanRunSummary } from 'newman'
import t from 'tap'
import { textAgent } from '../../../lib/agent/index.ts'
import { classicMisfit } from '../../helpers/classic-schemas.ts'
import { serveTasks } from '../../helpers/task-app.ts'

const SUITE = ['A user\'s way', 'Tasks', 'Artifacts']

/** What answers whom: the bodies of agentprotocol.ai v1, required members and types. */
const SCHEMAS: readonly (readonly [method: string, path: RegExp, schema: string])[] = [
  ['POST', /\/tasks$/, 'Task'],
  ['GET', /\/tasks$/, 'TaskListResponse'],
  ['GET', /\/tasks\/[^/]+$/, 'Task'],
  ['POST', /\/steps$/, 'Step'],
  ['GET', /\/steps$/, 'TaskStepsListResponse'],
  ['GET', /\/steps\/[^/]+$/, 'Step'],
  ['POST', /\/artifacts$/, 'Artifact'],
  ['GET', /\/artifacts$/, 'TaskArtifactsListResponse']
]
const DOWNLOAD = /\/artifacts\/[^/]+$/

t.test('the compliance suite\'s 12 requests and 26 assertions pass, and every answer fits its schema', async (t) => {
  const { summary, misfits } = await run(t, SUITE)
  t.strictSame(summary.run.failures.map(({ source, error }) => `${String(source?.name)}: ${error.message}`), [])
  t.match(summary.run.stats, { requests: { total: 12, failed: 0 }, assertions: { total: 26, failed: 0 } })
  t.strictSame(misfits, [])
})

t.test('so do nine requests of our own, for what the suite leaves out', async (t) => {
  const { summary, misfits } = await run(t, ['More'])
  t.strictSame(summary.run.failures.map(({ source, error }) => `${String(source?.name)}: ${error.message}`), [])
  t.match(summary.run.stats, { requests: { total: 9, failed: 0 }, assertions: { total: 15, failed: 0 } })
  t.strictSame(misfits, [])
})

/** Runs folders of the collection against a server; `misfits` are answers that are not what their schema says. */
async function run (t: Parameters<typeof serveTasks>[0], folder: string[]): Promise<{ readonly summary: NewmanRunSummary, readonly misfits: readonly string[] }> {
  const { port } = await serveTasks(t, { agent: textAgent(() => 'Washington') })
  const misfits: string[] = []
  const summary = await new Promise<NewmanRunSummary>((resolve, reject) => {
    newman.run({
      collection: fixture('agentprotocol-v1.postman.json'),
      folder,
      envVar: [{ key: 'url', value: `http://127.0.0.1:${port}` }],
      workingDir: fixture('newman')
    }, (error, result) => {
      if (error === null) resolve(result)
      else reject(error)
    }).on('request', (error, { request, response, item }) => {
      if (error !== null) return reject(error)
      const path = request.url.getPath()
      const [, , name = ''] = SCHEMAS.find(([method, pattern]) => method === request.method && pattern.test(path)) ?? []
      if (name === '' && DOWNLOAD.test(path)) return
      const misfit = name === '' ? 'has no schema' : classicMisfit(name, JSON.parse(String(response.stream)))
      if (misfit !== undefined) misfits.push(`${item.name}: ${misfit}`)
    })
  })
  return { summary, misfits }
}

function fixture (path: string): string {
  return fileURLToPath(new URL(`../../fixtures/${path}`, import.meta.url))
}
