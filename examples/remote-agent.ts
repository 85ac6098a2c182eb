// Two servers: `archive` keeps files behind a task service, `desk` talks to people over AG-UI and uses the archive as a tool.
// What the archive wants to do is asked at the desk, and the answer goes back to the archive. Checks itself and ends:
//
//   npx tsx --conditions=fastify-agents:source examples/remote-agent.ts
import assert from 'node:assert/strict'
import Fastify from 'fastify'
import { type Agent, asTool, defineTool, runTool, type Tool } from 'fastify-agents/agent'
import agUi from 'fastify-agents/ag-ui'
import agentProtocol from 'fastify-agents/agent-protocol'
import { remoteAgent } from 'fastify-agents/agent-protocol/client'

const TOKEN = 'a-secret-of-both-servers'

/** The far side: an agent with a tool that a human must approve. */
const shredded: string[] = []
const shred = defineTool({
  name: 'shred',
  parameters: { type: 'object', properties: { file: { type: 'string' } }, required: ['file'] },
  needsApproval: true,
  execute: ({ file }) => {
    shredded.push(String(file))
    return `${String(file)} is gone`
  }
})
const archive = employee('archive', shred, { file: 'draft.txt' }, 'The archive is tidy.')

const far = Fastify()
await far.register(agentProtocol, {
  agents: { archive },
  // Tasks belong to who submitted them; nobody else sees them.
  getPrincipal: ({ headers }) => {
    if (headers.authorization !== `Bearer ${TOKEN}`) throw Object.assign(new Error('Who are you?'), { statusCode: 401 })
    return { id: 'desk' }
  }
})
const url = await far.listen({ port: 0, host: '127.0.0.1' })

/** The near side: the archive as a local agent, and as a tool of another one. */
const remote = remoteAgent({ url, agentId: 'archive', description: 'Keeps the files.', headers: () => ({ authorization: `Bearer ${TOKEN}` }) })
const desk = employee('desk', asTool(remote), { prompt: 'Tidy up' }, 'All done.')

const near = Fastify()
await near.register(agUi, { agents: { desk } })
const page = `${await near.listen({ port: 0, host: '127.0.0.1' })}/agui/run`

const question = await run({ runId: 'run-1', messages: [{ id: 'u1', role: 'user', content: 'Tidy up, please' }] })
const [interrupt] = question.at(-1)?.outcome?.interrupts ?? []
console.log('The desk asks:', interrupt?.metadata)
assert.deepEqual(interrupt?.metadata?.toolInput, { file: 'draft.txt' })
assert.deepEqual(shredded, [], 'nothing happens before the answer')

const answer = await run({ runId: 'run-2', messages: [], resume: [{ interruptId: interrupt?.id, status: 'resolved', payload: { approved: true } }] })
const nested = answer.flatMap(({ name, value }) => name === 'subagent.text' ? [`${value?.source}: ${value?.delta}`] : [])
const text = answer.flatMap(({ type, delta }) => type === 'TEXT_MESSAGE_CONTENT' ? [delta] : []).join('')
console.log('Seen at the desk:', nested)
console.log('The desk says:', text)
assert.deepEqual(shredded, ['draft.txt'], 'once, and at the far side')
assert.deepEqual(nested, ['archive: The archive is tidy.'])
assert.equal(text, 'All done.')
await Promise.all([near.close(), far.close()])

/** An agent that makes one call and says one sentence; a model would choose both. */
function employee (name: string, tool: Tool, input: Record<string, string>, sentence: string): Agent {
  return {
    name,
    capabilities: { resume: true, denyRules: true },
    async * stream ({ resume = [] }, context) {
      const id = `${name}-call`
      const own = resume.find((decision) => decision.kind === 'confirm' && decision.toolCallId === id)
      const outcome = yield * runTool(tool, { id, name: tool.name, input }, context, {
        announce: resume.length === 0,
        // The answer is about this very call, or about what the agent behind it asked.
        ...own?.kind === 'confirm' ? { decision: own } : { resume }
      })
      if (outcome.kind === 'done') yield { type: 'TEXT_BLOCK_DELTA', delta: sentence }
    }
  }
}

interface PageEvent {
  readonly type: string
  readonly name?: string
  readonly delta?: string
  readonly value?: { readonly source?: string, readonly delta?: string }
  readonly outcome?: { readonly interrupts?: readonly { readonly id: string, readonly metadata?: { readonly toolInput?: unknown } }[] }
}

/** One run, as a page asks for it. */
async function run (input: object): Promise<PageEvent[]> {
  const response = await fetch(page, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ threadId: 'thread', protocolVersion: '1.0', ...input })
  })
  return (await response.text()).split('\n').flatMap((line) => line.startsWith('data: ') ? [JSON.parse(line.slice(6)) as PageEvent] : [])
}
