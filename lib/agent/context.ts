import type { PermissionRule } from './permission-rule.ts'
import { createPermissions, type Permissions } from './permissions.ts'

/** Key of a typed context value. Two keys of the same name are different keys. */
export interface ContextKey<T> {
  readonly name: string
  /** Never set: carries the value's type. */
  readonly type?: T
}

/** The name of the protocol that a run came by. */
export type ProtocolName = 'ag-ui' | 'agent-protocol' | 'a2a' | 'chat-completions' | (string & {})

/** What surrounds one execution: who, which session, and when to stop. Not persisted. */
export interface RuntimeContext {
  readonly sessionId: string
  readonly userId?: string
  readonly runId: string
  readonly protocol: ProtocolName
  /** Fires when the run must stop; the reason is a {@link RunInterrupted} when it should end gracefully. */
  readonly signal: AbortSignal
  /** String layer, keys prefixed by their protocol (`agui.threadId`). Values come from clients: not to be trusted. */
  readonly attributes: Map<string, unknown>
  /** Rules of the caller that forbid tool calls. */
  readonly denyRules: readonly PermissionRule[]
  /** Asks {@link RuntimeContext.denyRules}; call before executing a tool, and again after its arguments were edited. */
  readonly permissions: Permissions
  /** The value of a typed key, set on the server. */
  get<T>(key: ContextKey<T>): T | undefined
  /** Sets a typed key; `undefined` removes it. */
  set<T>(key: ContextKey<T>, value: T | undefined): void
}

/** What {@link createRuntimeContext} takes. */
export interface RuntimeContextInit {
  readonly sessionId: string
  readonly userId?: string | undefined
  /** @default a fresh id */
  readonly runId?: string | undefined
  /** @default 'none' */
  readonly protocol?: ProtocolName | undefined
  /** @default a signal that never fires */
  readonly signal?: AbortSignal | undefined
  readonly attributes?: Iterable<readonly [string, unknown]> | undefined
  readonly denyRules?: readonly PermissionRule[] | undefined
}

/** Makes the key of a typed context value: `const tenant = contextKey<Tenant>('tenant')`. */
export function contextKey<T> (name: string): ContextKey<T> {
  return Object.freeze({ name })
}

/** Makes a {@link RuntimeContext}; the attributes are copied, the deny rules frozen. */
export function createRuntimeContext (init: RuntimeContextInit): RuntimeContext {
  const values = new Map<ContextKey<unknown>, unknown>()
  const denyRules = Object.freeze([...init.denyRules ?? []])
  return {
    sessionId: init.sessionId,
    ...init.userId !== undefined && { userId: init.userId },
    runId: init.runId ?? crypto.randomUUID(),
    protocol: init.protocol ?? 'none',
    signal: init.signal ?? new AbortController().signal,
    attributes: new Map(init.attributes),
    denyRules,
    permissions: createPermissions(denyRules),
    // The key was made for T, so what is stored under it is a T.
    get: <T>(key: ContextKey<T>) => values.get(key) as T | undefined,
    set: (key, value) => {
      if (value === undefined) values.delete(key)
      else values.set(key, value)
    }
  }
}

/** The same context with another signal and, if given, other members; both share attributes and typed values. */
export function deriveContext (
  context: RuntimeContext, changes: { readonly signal: AbortSignal, readonly sessionId?: string, readonly runId?: string }
): RuntimeContext {
  return {
    sessionId: changes.sessionId ?? context.sessionId,
    ...context.userId !== undefined && { userId: context.userId },
    runId: changes.runId ?? context.runId,
    protocol: context.protocol,
    signal: changes.signal,
    attributes: context.attributes,
    denyRules: context.denyRules,
    permissions: context.permissions,
    get: (key) => context.get(key),
    set: (key, value) => { context.set(key, value) }
  }
}
