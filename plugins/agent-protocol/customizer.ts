import { type RuntimeContext } from '../../lib/agent/index.ts'
import { type AgentRequest, agentRequestKey } from './agent-request.ts'

/** Key of the runtime context's attributes that holds the whole of `context.attributes`; absent where there are none. */
export const RUNTIME_CONTEXT_ATTRIBUTES_KEY = 'agentprotocol.context.attributes'

/** Fills the runtime context of each execution, after {@link RUNTIME_CONTEXT_ATTRIBUTES_KEY} was set. May write any key; throwing fails the task. */
export type RuntimeContextCustomizer = (request: AgentRequest, context: RuntimeContext) => void | Promise<void>

/** A customizer with its place: lower orders first, then as registered. */
export interface OrderedCustomizer {
  /** @default 0 */
  readonly order?: number
  readonly customize: RuntimeContextCustomizer
}

/** Names that the framework or a protocol gives a meaning of its own: a caller must not choose what stands there. */
const RESERVED = new Set(['agentId', 'outboundAddress', '__proto__', 'constructor', 'prototype'])
const RESERVED_PREFIXES = ['agentscope.', 'agui.', 'io.agentscope.', 'agentprotocol.', 'a2a.', 'fastify-agents.']

/** Whether a caller's attribute may not be copied to this key. */
export function isReservedKey (key: string): boolean {
  return key.trim() === '' || RESERVED.has(key) || RESERVED_PREFIXES.some((prefix) => key.startsWith(prefix))
}

/** A customizer that copies the named attributes, where they are there and not null, to keys of their own. Reserved names are left out, with a warning. */
export function flatten (...keys: readonly string[]): RuntimeContextCustomizer {
  const reserved = keys.filter(isReservedKey)
  if (reserved.length > 0) process.emitWarning(`Reserved keys are not flattened: ${reserved.map((key) => JSON.stringify(key)).join(', ')}`, { code: 'AGT_WARN_RESERVED_KEY' })
  const allowed = keys.filter((key) => !isReservedKey(key))
  return ({ attributes }, context) => {
    for (const key of allowed) {
      if (Object.hasOwn(attributes, key)) context.attributes.set(key, attributes[key])
    }
  }
}

/** The customizers in the order in which they are applied. */
export function inOrder (customizers: readonly (RuntimeContextCustomizer | OrderedCustomizer)[]): readonly RuntimeContextCustomizer[] {
  const ordered = customizers.map((item) => typeof item === 'function' ? { order: 0, customize: item } : { order: item.order ?? 0, customize: item.customize })
  return ordered.sort((a, b) => a.order - b.order).map(({ customize }) => customize)
}

/** Fills the context of one execution: the request, the attributes under their one key, then the customizers, each over what came before. */
export async function prepareContext (request: AgentRequest, context: RuntimeContext, customizers: readonly RuntimeContextCustomizer[]): Promise<void> {
  context.set(agentRequestKey, request)
  if (Object.keys(request.attributes).length > 0) context.attributes.set(RUNTIME_CONTEXT_ATTRIBUTES_KEY, request.attributes)
  for (const customize of customizers) await customize(request, context)
}
