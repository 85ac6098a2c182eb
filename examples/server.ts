// `npm start`: one server, one agent contract, several ways in. Needs no key and no service;
// with OPENAI_API_KEY, OPENAI_BASE_URL or MODEL set, that model runs the same agents with the same tools.
//
// With DATA_DIR, it keeps everything in that directory and finds it again after a restart; without, in memory.
//
//   a page           GET  /                      try it all here
//   AG-UI            POST /agui/run              what the page uses, and yours will
//   Agent Protocol   POST /tasks                 other programs, at the root
//   agentprotocol v1 POST /ap/v1/agent/tasks     the classic protocol, over the same tasks
//   your own topics  GET  /events/:topic         orders, logs, notifications
//   description      GET  /openapi.json
//   health, metrics  GET  /livez, /readyz, /metrics
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import closeWithGrace from 'close-with-grace'
import { lmdbStore } from 'fastify-agents/stores/lmdb'
import { buildServer } from './app.ts'
import { modelFromEnvironment } from './model.ts'

const port = Number(process.env.PORT ?? 8080)
const host = process.env.HOST ?? '127.0.0.1'

if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(`PORT is "${process.env.PORT}", but a port is a number from 0 to 65535.`)
  process.exit(1)
}

const dataDir = process.env.DATA_DIR
const model = chooseModel()
const store = dataDir === undefined || dataDir === '' ? undefined : await openStore(join(dataDir, 'runs'))
const folder = process.env.FILES_DIR ?? (store === undefined ? await mkdtemp(join(tmpdir(), 'fastify-agents-')) : join(`${dataDir}`, 'files'))
const app = await buildServer({ folder, model, store, tasksDir: store === undefined ? undefined : join(`${dataDir}`, 'tasks'), logLevel: process.env.LOG_LEVEL ?? 'info' })

closeWithGrace({ delay: 10_000 }, async ({ err }) => {
  if (err !== undefined) app.log.error({ err }, 'closing after an error')
  // Behind a balancer, wait here until it has seen that /readyz says no.
  app.agents.drain()
  await app.close()
})

try {
  const address = await app.listen({ port, host })
  console.log(`fastify-agents listens on ${address}`)
} catch (error) {
  if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') {
    console.error(`Port ${port} on ${host} is taken. Choose another one: PORT=8081 npm start`)
  } else if ((error as NodeJS.ErrnoException).code === 'EACCES') {
    console.error(`Port ${port} may not be opened by this user. Choose one above 1023: PORT=8080 npm start`)
  } else {
    console.error(`The server could not listen on ${host}:${port}: ${(error as Error).message}`)
  }
  process.exit(1)
}

async function openStore (path: string) {
  try {
    return await lmdbStore({ path })
  } catch (error) {
    console.error((error as Error).message)
    process.exit(1)
  }
}

function chooseModel () {
  try {
    return modelFromEnvironment(process.env)
  } catch (error) {
    console.error((error as Error).message)
    process.exit(1)
  }
}
