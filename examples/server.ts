// `npm start`: one server, one agent contract, several ways in. Needs no key and no service;
// with OPENAI_API_KEY, OPENAI_BASE_URL or MODEL set, that model runs the same agents with the same tools.
//
// It keeps everything in memory; with DATA_DIR in that directory, where it finds it again after a restart; with REDIS_URL in a Redis, which any
// number of these servers may share.
//
//   a page           GET  /                      try it all here
//   AG-UI            POST /agui/run              what the page uses, and yours will
//   Agent Protocol   POST /tasks                 other programs, at the root
//   agentprotocol v1 POST /ap/v1/agent/tasks     the classic protocol, over the same tasks
//   your own topics  GET  /events/:topic         orders, logs, notifications
//   description      GET  /openapi.json
//   health, metrics  GET  /livez, /readyz, /metrics
import closeWithGrace from 'close-with-grace'
import { buildServer } from './app.ts'
import { modelFromEnvironment } from './model.ts'
import { openStorage } from './storage.ts'

const port = Number(process.env.PORT ?? 8080)
const host = process.env.HOST ?? '127.0.0.1'

if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(`PORT is "${process.env.PORT}", but a port is a number from 0 to 65535.`)
  process.exit(1)
}

const model = await orExit(() => modelFromEnvironment(process.env))
const storage = await orExit(() => openStorage(process.env))
const app = await buildServer({ ...storage, model, logLevel: process.env.LOG_LEVEL ?? 'info' })

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

/** Settings that can not be used are said in a sentence, not in a stack trace. */
async function orExit<Value> (make: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await make()
  } catch (error) {
    console.error((error as Error).message)
    process.exit(1)
  }
}
