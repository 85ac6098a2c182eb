import { type SseHub } from '../../lib/sse/index.ts'
import { type AgentsHost } from '../agents/index.ts'
import { type ResolvedAgUiOptions } from './options.ts'
import { type AgUiProtocol } from './protocol.ts'

/** What the routes of one registration share. */
export interface AgUiScope {
  readonly host: AgentsHost
  /** The open streams under this prefix. */
  readonly hub: SseHub
  readonly options: ResolvedAgUiOptions
  readonly protocol: AgUiProtocol
  /** Path that the routes stand under. */
  readonly mount: string
}
