import { InvalidOptionError, readBoolean, readChoice } from '../../lib/options.ts'
import { type EventConverter, type EventEnricher } from './extension.ts'
import { type Profile } from './input.ts'
import { type NormalisedInput } from './schemas.ts'

/** Options of the translation between the agent and AG-UI (section 25). */
export interface MappingOptions {
  /** Whether the agent's thinking is sent as reasoning messages. @default false */
  readonly enableReasoning?: boolean
  /** Whether each model call's usage is sent as a CUSTOM `token_usage` event. @default false */
  readonly emitTokenUsage?: boolean
  /** Whether RUN_FINISHED and RUN_ERROR carry the run's usage, summed by model. @default true */
  readonly emitRunUsage?: boolean
  /** Whether arguments of server tools are streamed; those of the page's own tools always are. @default true */
  readonly emitToolCallArgs?: boolean
  /** How events without a counterpart of their own are sent: as RAW, as the reference does, or some of them as CUSTOM `agentscope.*`. @default 'raw' */
  readonly mapExtras?: 'raw' | 'custom'
  /** Whether events that nothing else maps are sent as RAW. @default true */
  readonly rawFallback?: boolean
  /** How a child agent's events are sent: as CUSTOM `subagent.*`, or as if they were the parent's own. @default 'custom' */
  readonly subagentEvents?: 'custom' | 'flatten'
  /** Alias of `subagentEvents`: true = 'flatten', false = 'custom'. */
  readonly emitSubagentEventsAsNative?: boolean
  /** Whether a child's thinking is sent. @default the value of `enableReasoning` */
  readonly subagentThinking?: boolean
  /** Whether RUN_STARTED repeats the request, or what it repeats instead (to leave sensitive parts out). @default true */
  readonly echoInput?: boolean | ((input: NormalisedInput) => NormalisedInput | undefined)
  /** Converters of agent events; for the same type the last one wins, over the built-in one too. @default [] */
  readonly eventConverters?: readonly EventConverter[]
  /** Run in order over what was converted; each may change, add or drop events. @default [] */
  readonly eventEnrichers?: readonly EventEnricher[]
  /** Whether each event gets a `timestamp` where it has none. @default false */
  readonly baseEventPropertiesEnricherEnabled?: boolean
  /** Whether a RUN_FINISHED follows each RUN_ERROR. Every official client throws on it: for front ends of one's own only. @default false */
  readonly emitRunFinishedAfterError?: boolean
  /** Whether clients see the text of errors that were not made for them. @default false */
  readonly exposeErrors?: boolean
  /** What becomes of a document (or a file handle) in the newest user turn: the run is refused, or a note takes its place. Older turns always get the note. @default 'error' */
  readonly unsupportedContent?: 'error' | 'skip'
  /** How a run ends that waits for a tool of the page: success with the call pending, or interrupt, as the reference does. @default 'success' */
  readonly frontendToolOutcome?: 'success' | 'interrupt'
  /** The stream's shape: by the client's `protocolVersion`, or always one. @default 'auto' */
  readonly profile?: 'auto' | Profile
  /** How clients before 1.0 are told of a stopped run: RUN_ERROR `CANCELLED`, or a plain RUN_FINISHED. @default 'error' */
  readonly legacyCancel?: 'error' | 'finished'
}

/** {@link MappingOptions} with every default filled in. */
export interface MappingConfig {
  readonly enableReasoning: boolean
  readonly emitTokenUsage: boolean
  readonly emitRunUsage: boolean
  readonly emitToolCallArgs: boolean
  readonly mapExtras: 'raw' | 'custom'
  readonly rawFallback: boolean
  readonly subagentEvents: 'custom' | 'flatten'
  readonly subagentThinking: boolean
  readonly echoInput: boolean | ((input: NormalisedInput) => NormalisedInput | undefined)
  readonly eventConverters: readonly EventConverter[]
  readonly eventEnrichers: readonly EventEnricher[]
  readonly baseEventPropertiesEnricherEnabled: boolean
  readonly emitRunFinishedAfterError: boolean
  readonly exposeErrors: boolean
  readonly unsupportedContent: 'error' | 'skip'
  readonly frontendToolOutcome: 'success' | 'interrupt'
  readonly profile: 'auto' | Profile
  readonly legacyCancel: 'error' | 'finished'
}

/** Fills in defaults; the result is frozen, and shares no list with the options. @throws AGT_ERR_OPTION_INVALID */
export function resolveMappingConfig (options: MappingOptions = {}): MappingConfig {
  const enableReasoning = readBoolean('enableReasoning', options.enableReasoning, false)
  return Object.freeze({
    enableReasoning,
    emitTokenUsage: readBoolean('emitTokenUsage', options.emitTokenUsage, false),
    emitRunUsage: readBoolean('emitRunUsage', options.emitRunUsage, true),
    emitToolCallArgs: readBoolean('emitToolCallArgs', options.emitToolCallArgs, true),
    mapExtras: readChoice('mapExtras', options.mapExtras, ['raw', 'custom'], 'raw'),
    rawFallback: readBoolean('rawFallback', options.rawFallback, true),
    subagentEvents: resolveSubagentEvents(options),
    subagentThinking: readBoolean('subagentThinking', options.subagentThinking, enableReasoning),
    echoInput: typeof options.echoInput === 'function' ? options.echoInput : readBoolean('echoInput', options.echoInput, true),
    eventConverters: readList('eventConverters', options.eventConverters, (item) => typeof item?.convert === 'function' && Array.isArray(item.eventTypes)),
    eventEnrichers: readList('eventEnrichers', options.eventEnrichers, (item) => typeof item === 'function'),
    baseEventPropertiesEnricherEnabled: readBoolean('baseEventPropertiesEnricherEnabled', options.baseEventPropertiesEnricherEnabled, false),
    emitRunFinishedAfterError: readBoolean('emitRunFinishedAfterError', options.emitRunFinishedAfterError, false),
    exposeErrors: readBoolean('exposeErrors', options.exposeErrors, false),
    unsupportedContent: readChoice('unsupportedContent', options.unsupportedContent, ['error', 'skip'], 'error'),
    frontendToolOutcome: readChoice('frontendToolOutcome', options.frontendToolOutcome, ['success', 'interrupt'], 'success'),
    profile: readChoice('profile', options.profile, ['auto', 'legacy', 'v1'], 'auto'),
    legacyCancel: readChoice('legacyCancel', options.legacyCancel, ['error', 'finished'], 'error')
  })
}

function resolveSubagentEvents (options: MappingOptions): 'custom' | 'flatten' {
  const alias = options.emitSubagentEventsAsNative
  if (options.subagentEvents === undefined) return readBoolean('emitSubagentEventsAsNative', alias, false) ? 'flatten' : 'custom'
  if (alias !== undefined) throw new InvalidOptionError('emitSubagentEventsAsNative', String(alias), 'it is another name of subagentEvents, which is given too')
  return readChoice('subagentEvents', options.subagentEvents, ['custom', 'flatten'], 'custom')
}

function readList<T> (name: string, list: readonly T[] | undefined, fits: (item: T) => boolean): readonly T[] {
  if (list === undefined) return Object.freeze([])
  if (!Array.isArray(list)) throw new InvalidOptionError(name, typeof list, 'it is an array')
  list.forEach((item, index) => {
    if (!fits(item)) throw new InvalidOptionError(`${name}[${index}]`, typeof item, 'it has not the shape that is called')
  })
  return Object.freeze([...list])
}
