// What must and must not compile (checked by tsc, never run).
import { Type } from '@sinclair/typebox'
import { type Agent, type AgentEvent, type AgentEventInit, type AgentInput, contextKey, defineTool, type Msg, type RuntimeContext } from 'fastify-agents/agent'

/** Agents yield events without ids, and each type keeps its own members. */
export async function * stream (): AsyncGenerator<AgentEventInit> {
  yield { type: 'TEXT_BLOCK_DELTA', delta: 'a' }
  yield { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'add', executor: 'client' }
  yield { type: 'CUSTOM', name: 'state_snapshot', value: { snapshot: { list: [1, null] } } }
  // @ts-expect-error a text delta needs its delta
  yield { type: 'TEXT_BLOCK_DELTA' }
  // @ts-expect-error a call needs its id
  yield { type: 'TOOL_CALL_DELTA', delta: '{}' }
  // @ts-expect-error there is no such type
  yield { type: 'RUN_STARTED' }
  // @ts-expect-error a custom value is an object
  yield { type: 'CUSTOM', name: 'x', value: 5 }
  // @ts-expect-error states are lower case
  yield { type: 'TOOL_RESULT_END', toolCallId: 'c', state: 'SUCCESS' }
}

/** Adapters see stamped events, and narrow by type. */
export function narrow (event: AgentEvent): string {
  const stamp: string = event.id + event.createdAt
  switch (event.type) {
    case 'TEXT_BLOCK_DELTA': return stamp + event.delta
    case 'AGENT_RESULT': return event.result.content.map((block) => block.type === 'tool_result' ? block.output.length : block.type).join()
    // @ts-expect-error a result has no delta
    case 'TOOL_RESULT_END': return event.delta
    default: return stamp
  }
}

// @ts-expect-error an event without its stamps is no AgentEvent
export const unstamped: AgentEvent = { type: 'TEXT_BLOCK_DELTA', delta: 'a' }

// @ts-expect-error roles are upper case
export const message: Msg = { id: 'm', role: 'user', content: [] }

export const plain: Agent = { name: 'a', stream: (_: AgentInput, context: RuntimeContext) => stream2(context) }

// @ts-expect-error an agent has a name
export const nameless: Agent = { stream: () => stream() }

async function * stream2 (context: RuntimeContext): AsyncGenerator<AgentEventInit> {
  const key = contextKey<{ plan: string }>('tenant')
  const plan: string | undefined = context.get(key)?.plan
  // @ts-expect-error the value of a key has the key's type
  context.set(key, 5)
  yield { type: 'HINT_BLOCK', hint: plan ?? '' }
}

/** The schema types the input. */
export const typed = defineTool({
  name: 'add',
  parameters: Type.Object({ a: Type.Number() }),
  needsApproval: ({ a }) => a > 1,
  // @ts-expect-error there is no b
  execute: ({ a, b }) => String(a + b)
})

export const untyped = defineTool({ name: 'any', parameters: { type: 'object' }, execute: ({ whatever }) => whatever })

// @ts-expect-error a function is no output
export const wrong = defineTool({ name: 'any', execute: () => () => 1 })
