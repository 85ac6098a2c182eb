// Starts each run of a thread as soon as the last one has told its terminal, whether its response is over or not.
import { type Agent } from '../../../../../lib/agent/index.ts'
import { checkFrames } from '../../../../helpers/ag-ui-check.ts'
import { serveApp } from '../../../../helpers/ag-ui-app.ts'

const agent: Agent = { name: 'quick', async * stream () { yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x' } } }
const server = await serveApp({ teardown () {} }, { agent })
const terminals: Record<string, number> = {}
for (let index = 0; index < 1_000; index++) {
  const client = await server.run({ runId: `run-${index}` })
  const frames = await client.until(({ data }) => /"type":"RUN_(FINISHED|ERROR)"/.test(data ?? ''))
  const type = checkFrames(frames).at(-1)?.type ?? ''
  terminals[type] = (terminals[type] ?? 0) + 1
  client.destroy().catch(() => {})
}
const troubles = server.logs.filter(({ level }) => level >= 40)
await server.app.close()
console.log(JSON.stringify({ terminals, troubles }))
process.exit(0)
