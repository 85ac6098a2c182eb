// What must and must not compile (checked by tsc, never run).
import { Agent as HttpsAgent } from 'node:https'
import { type Agent, asTool, type Decision, type Pending, type RuntimeContext, type Tool } from 'fastify-agents/agent'
import { backgroundTools, remoteAgent, remoteAttributes, type RemoteTask, type TaskResult } from 'fastify-agents/agent-protocol/client'

/** A remote agent is an agent, in every form of its options. */
export const agents: readonly Agent[] = [
  remoteAgent({ url: 'http://127.0.0.1' }),
  remoteAgent({ url: new URL('https://far'), name: 'far', agentId: 'near', headers: { authorization: 'x' }, detail: 'full', connections: new HttpsAgent({ ca: '' }) }),
  remoteAgent({ url: 'http://127.0.0.1', headers: async () => ({ authorization: 'x' }), askPolicy: 'deny', attributes: { tenant: 'acme', list: [1, null] } }),
  remoteAgent({ url: 'http://127.0.0.1', askPolicy: (pending) => pending.map(answer) })
]

// @ts-expect-error: there is no agent without an address
remoteAgent({ name: 'nowhere' })
// @ts-expect-error: a level that does not exist
remoteAgent({ url: 'http://127.0.0.1', detail: 'all' })
// @ts-expect-error: attributes are JSON
remoteAgent({ url: 'http://127.0.0.1', attributes: { at: new Date() } })
// @ts-expect-error: a header is a text
remoteAgent({ url: 'http://127.0.0.1', headers: { retries: 5 } })

export const tools: readonly Tool[] = [...agents.map((agent) => asTool(agent)), ...backgroundTools(remoteAgent({ url: 'http://127.0.0.1' }))]
// @ts-expect-error: only remote agents work in the background
backgroundTools({ name: 'local', stream: async function * () {} })

/** Updates and results narrow by their kind. */
export async function read (task: RemoteTask, context: RuntimeContext): Promise<string> {
  context.set(remoteAttributes, { tenant: 'acme' })
  // @ts-expect-error: attributes are an object
  context.set(remoteAttributes, 'acme')
  for await (const update of task.events({ signal: context.signal })) {
    switch (update.kind) {
      case 'event': return update.event.type
      case 'gap': return `${update.reason} ${update.missed ?? '?'}`
      case 'waiting': await task.resume(update.pending.map(answer))
        break
      // @ts-expect-error: only a success has a result
      case 'end': return update.result
    }
  }
  return textOf(await task.result())
}

function textOf (result: TaskResult): string {
  if (result.kind === 'waiting') return String(result.pending.length)
  switch (result.status) {
    case 'success': return result.result ?? ''
    case 'error': return result.error
    case 'cancelled': return 'cancelled'
  }
}

function answer (pending: Pending): Decision {
  return pending.kind === 'input'
    ? { kind: 'input', requestId: pending.request.id, status: 'resolved' }
    : { kind: 'confirm', toolCallId: pending.toolCall.id, approved: true }
}
