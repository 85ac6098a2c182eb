import { type AgentEvent } from '../../lib/agent/index.ts'
import { type MappingConfig } from './config.ts'
import { type AgUiEvent } from './event-schemas.ts'

/** Events AG-UI has no shape for, under names of our own. */
const CUSTOM_NAMES: Readonly<Partial<Record<AgentEvent['type'], string>>> = {
  DATA_BLOCK_START: 'agentscope.data_block',
  DATA_BLOCK_DELTA: 'agentscope.data_block',
  DATA_BLOCK_END: 'agentscope.data_block',
  HINT_BLOCK: 'agentscope.hint',
  EXCEED_MAX_ITERS: 'agentscope.exceed_max_iters',
  ALL_TOOLS_DENIED: 'agentscope.all_tools_denied',
  SUBAGENT_EXPOSED: 'agentscope.subagent_exposed'
}

/** An event without a counterpart in AG-UI: as RAW, as the reference sends it, or by name with `mapExtras: 'custom'` (section 9.2). */
export function extraEvent (event: AgentEvent, config: Pick<MappingConfig, 'mapExtras' | 'rawFallback'>): AgUiEvent | undefined {
  if (config.mapExtras === 'custom') {
    // Why a run stops is told by its outcome.
    if (event.type === 'REQUEST_STOP') return undefined
    const name = CUSTOM_NAMES[event.type]
    if (name !== undefined) {
      const { id: _id, createdAt: _createdAt, ...value } = event
      return { type: 'CUSTOM', name, value }
    }
  }
  if (!config.rawFallback) return undefined
  return { type: 'RAW', event, ...event.source !== undefined && { source: event.source } }
}
