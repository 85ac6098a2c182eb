import { conform } from './conform.ts'
import { type InputIssue, type MediaPart, type NormalisedInput, RunAgentInput, type Tool } from './schemas.ts'

/** What was mended in a request or passed over; for the log, never for the caller. */
export interface InputWarning {
  readonly path: string
  readonly reason: string
}

/** A request that can be run, or what is wrong with it. */
export type ParsedInput =
  | { readonly kind: 'valid', readonly input: NormalisedInput, readonly warnings: readonly InputWarning[] }
  | { readonly kind: 'invalid', readonly issues: readonly InputIssue[] }

/** Limits of {@link parseRunInput}. */
export interface ParseLimits {
  /** How deep the body may be nested. @default 64 */
  readonly maxDepth?: number
}

/**
 * Reads the body of a run request (sections 3.1-3.4, 3.6): unknown members are left out, nulls of known optional members count
 * as absent, legacy `binary` parts are upgraded, `tools` and `context` are filled in, opaque values are kept as sent.
 * Issues name the field and the reason and repeat nothing of the value.
 */
export function parseRunInput (body: unknown, limits: ParseLimits = {}): ParsedInput {
  const warnings: InputWarning[] = []
  const { value, issues, unknown } = conform(RunAgentInput, upgrade(body, warnings), limits.maxDepth ?? 64)
  if (issues.length > 0) return { kind: 'invalid', issues: issues.map(({ path, reason }) => ({ path: path === '' ? '(body)' : path, reason })) }
  for (const path of unknown) warnings.push({ path, reason: 'unknown, left out' })
  const input = value as RunAgentInput // conform() reported no issue, so it has that shape
  return {
    kind: 'valid',
    input: { ...input, tools: usableTools(input.tools ?? [], warnings), context: input.context ?? [] },
    warnings
  }
}

/** How a stream is shaped: for 0.0.x clients, or for 1.x (section 8). */
export type Profile = 'legacy' | 'v1'

/** A client's protocol version, understood. */
export interface ResolvedProfile {
  readonly profile: Profile
  /** Whether the version is one we speak; another major is served as 1.0, which the caller may be told (section 2.2). */
  readonly supported: boolean
}

/**
 * Chooses the stream's shape. Clients before 1.0 send no version and throw on several legal 1.0 features, so a version that is
 * absent or cannot be read means `legacy`; any 1.x means `v1`. An option other than `'auto'` decides by itself.
 */
export function resolveProfile (protocolVersion: string | undefined, option: 'auto' | Profile = 'auto'): ResolvedProfile {
  const major = /^(\d{1,9})(?:\.\d+)*$/.exec(protocolVersion ?? '')?.[1]
  const supported = major === undefined || Number(major) <= 1
  if (option !== 'auto') return { profile: option, supported }
  return { profile: major === undefined || Number(major) === 0 ? 'legacy' : 'v1', supported }
}

/** Brings older spellings into today's, without touching the body itself. What has an unexpected shape is left for the schema to refuse. */
function upgrade (body: unknown, warnings: InputWarning[]): unknown {
  if (!isObject(body)) return body
  const upgraded: Record<string, unknown> = { ...body }
  if (Array.isArray(body['messages'])) {
    upgraded['messages'] = body['messages'].map((message, index) => isObject(message) ? upgradeMessage(message, `messages[${index}]`, warnings) : message)
  }
  if (Array.isArray(body['tools'])) {
    // A tool that says nothing about itself is sent by OpenAI-style clients; 1.0 clients refuse its echo.
    upgraded['tools'] = body['tools'].map((tool) => isObject(tool) && (tool['description'] === undefined || tool['description'] === null) ? { ...tool, description: '' } : tool)
  }
  return upgraded
}

function upgradeMessage (message: Record<string, unknown>, path: string, warnings: InputWarning[]): Record<string, unknown> {
  const upgraded = { ...message }
  // The reference reads roles in any case.
  if (typeof message['role'] === 'string') upgraded['role'] = message['role'].toLowerCase()
  const parts = message['content']
  if (!Array.isArray(parts) || !parts.some(isBinary)) return upgraded
  warnings.push({ path: `${path}.content`, reason: 'legacy binary part, upgraded' })
  const modern = new Set(parts.filter((part) => !isBinary(part)).map((part) => JSON.stringify(mirror(part))))
  // Clients of the changeover sent the same attachment in both spellings: one is enough.
  upgraded['content'] = parts.map((part) => isBinary(part) ? fromBinary(part) : part)
    .filter((part, index) => !isBinary(parts[index]) || !modern.has(JSON.stringify(mirror(part))))
  return upgraded
}

interface BinaryPart { readonly type: 'binary', readonly mimeType?: unknown, readonly data?: unknown, readonly url?: unknown, readonly id?: unknown, readonly filename?: unknown }

function isBinary (part: unknown): part is BinaryPart {
  return isObject(part) && part['type'] === 'binary'
}

/** 0.0.x binary part -> the part of its media type (section 3.4). */
function fromBinary (part: BinaryPart): unknown {
  const mimeType = typeof part.mimeType === 'string' ? part.mimeType : undefined
  const type = (/^(image|audio|video)\//i.exec(mimeType ?? '')?.[1]?.toLowerCase() ?? 'document') as MediaPart['type'] // the expression matches nothing else
  const source = part.data !== undefined && part.data !== null && part.data !== ''
    ? { type: 'data', value: part.data, mimeType: mimeType ?? 'application/octet-stream' }
    : part.url !== undefined && part.url !== null && part.url !== ''
      ? { type: 'url', value: part.url, ...mimeType !== undefined && { mimeType } }
      : { type: 'file', value: part.id, ...mimeType !== undefined && { mimeType } }
  return { type, source, ...typeof part.filename === 'string' && part.filename !== '' && { metadata: { filename: part.filename } } }
}

/** What makes two parts the same attachment. */
function mirror (part: unknown): unknown {
  if (!isObject(part) || !isObject(part['source'])) return part
  const { type, value, mimeType } = part['source']
  return [part['type'], type, value, mimeType, isObject(part['metadata']) ? part['metadata']['filename'] : undefined]
}

/** Leaves out tools that no model could be given: internal names, doubles, parameters that are no schema object (section 19.1). */
function usableTools (tools: readonly Tool[], warnings: InputWarning[]): Tool[] {
  const names = new Set<string>()
  return tools.filter((tool, index) => {
    const problem = tool.name.trim() === ''
      ? 'its name is blank'
      : tool.name.startsWith('__')
        ? 'its name is reserved'
        : names.has(tool.name)
          ? 'another tool has its name'
          : tool.parameters !== undefined && !isObject(tool.parameters) ? 'its parameters are no schema object' : undefined
    names.add(tool.name)
    if (problem !== undefined) warnings.push({ path: `tools[${index}]`, reason: `left out: ${problem}` })
    return problem === undefined
  })
}

function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
