import type { ProviderMetadata } from 'ai'
import { isObject, type JsonObject, toJson } from '../../agent/index.ts'

/** Keys of block and call metadata with a meaning to this bridge. None of them can be set by a client of a protocol. */
export const metadataKeys = {
  /** What a provider wants back with a piece of its answer: signatures, encrypted reasoning, ids. */
  provider: 'providerMetadata',
  /** The provider ran the call itself. */
  executed: 'providerExecuted',
  /** The provider asked for approval under this id. */
  approval: 'approvalId',
  /** Signed reasoning that stood before a call that waits: providers refuse the call's result without it. */
  reasoning: 'reasoning',
  /** The call of ours whose child waits. */
  parent: 'parentCall'
} as const

/** As metadata of an event; absent when there is none. */
export function withProviderMetadata (metadata: ProviderMetadata | undefined): { metadata?: JsonObject } {
  return metadata === undefined ? {} : { metadata: { [metadataKeys.provider]: plain(metadata) } }
}

/** As options of a message part; absent when there are none. */
export function providerOptionsOf (metadata: JsonObject | undefined): { providerOptions?: ProviderMetadata } {
  const options = metadata?.[metadataKeys.provider]
  // JSON objects by provider: what withProviderMetadata() wrote.
  return isObject(options) ? { providerOptions: options as ProviderMetadata } : {}
}

/** A copy in plain JSON. */
export function plain (value: object): JsonObject {
  // An object stays one.
  return toJson(value) as JsonObject
}
