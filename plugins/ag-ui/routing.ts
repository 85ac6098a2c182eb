import { isObject } from '../../lib/agent/index.ts'

/** Where a request may name its agent. */
export interface AgentChoice {
  readonly pathAgentId?: string | undefined
  readonly headerAgentId?: string | undefined
  /** The caller's own properties; only an object's `agentId` is looked at. */
  readonly forwardedProps?: unknown
}

/**
 * The agent a request asks for: path, then header, then `forwardedProps.agentId`; undefined means the default agent. The first one that is not
 * blank decides, also when nobody is registered under it: falling through would run another agent than was asked for (section 23).
 */
export function chooseAgent ({ pathAgentId, headerAgentId, forwardedProps }: AgentChoice): string | undefined {
  return named(pathAgentId) ?? named(headerAgentId) ?? (isObject(forwardedProps) ? named(forwardedProps['agentId']) : undefined)
}

function named (value: unknown): string | undefined {
  const text = typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
  return text.trim() === '' ? undefined : text
}
