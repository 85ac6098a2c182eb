import { request } from 'node:http'
import agUi from '../../plugins/ag-ui/index.ts'
import { answerParent, tellParent } from './answering.ts'
import { createApp, listenApp } from './fastify-server.ts'
import { benchAgent } from './peers/ag-ui.ts'
import { openRedisStore } from './redis-server.ts'

/** The node that executes the runs of `ag-ui-nodes`, in a process of its own; told the port of Redis, and each run's request by IPC. */
const app = createApp()
await app.register(agUi, { agents: { bench: benchAgent }, store: await openRedisStore(Number(process.argv[2])), onDisconnect: 'continue' })
const port = await listenApp(app)

answerParent<string>(async (body) => {
  await new Promise<void>((resolve, reject) => {
    const headers = { 'content-type': 'application/json', accept: 'text/event-stream', 'content-length': Buffer.byteLength(body) }
    request({ port, host: '127.0.0.1', method: 'POST', path: '/agui/run', headers }, (response) => {
      // It has begun; nobody reads it here.
      response.destroy()
      resolve()
    }).once('error', reject).end(body)
  })
})
tellParent({ id: 0, value: null })
