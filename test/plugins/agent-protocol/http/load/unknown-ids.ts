// Ten thousand ids that nobody submitted, asked for by every verb, and what is left of them.
import { setTimeout as delay } from 'node:timers/promises'
import { textAgent } from '../../../../../lib/agent/index.ts'
import { leftBy } from '../../../../helpers/leaks.ts'
import { buildTaskApp } from '../../../../helpers/task-app.ts'

const IDS = 10_000
const AT_ONCE = 50
const PATHS = ['', '/wait', '/events', '/events?from_seq=5', '/cancel', '/resume'] as const

const { app, store, ask } = await buildTaskApp({ teardown () {} }, { agent: textAgent(() => 'x'), subscribeGraceMs: 5 })
app.log.level = 'silent'

let next = 0
const statuses = new Set<number>()
async function visit (): Promise<void> {
  const id = next++
  const path = PATHS[id % PATHS.length] ?? ''
  const isPost = path === '/cancel' || path === '/resume'
  const { status } = await ask(isPost ? 'POST' : 'GET', `/tasks/unknown-${id}${path}`, isPost ? { decisions: [] } : undefined)
  statuses.add(status)
}

const leftovers = await leftBy(IDS, {
  emitters: [app.server],
  async serve (count) {
    for (let done = 0; done < count; done += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, visit))
  },
  settle: () => delay(200)
})
console.log(JSON.stringify({ ids: IDS, statuses: [...statuses], runs: (await store.index.list({}, { limit: 10 })).runs.length, ...leftovers }))
process.exit(0)
