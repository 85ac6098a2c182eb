import { isObject, type Pending, pendingId, toJson } from '../../lib/agent/index.ts'
import { type ExecutionInfo, type Projection, type RunEngine, type RunFailure, type RunFold, type RunProtocol, type RunSpec } from '../../lib/runs/index.ts'
import { type RunRecord } from '../../lib/stores/index.ts'
import { type MappingConfig } from './config.ts'
import { runError } from './errors.ts'
import { createProjection } from './events.ts'
import { type Profile } from './input.ts'
import { interruptId } from './interrupts.ts'
import { type SkippedPart } from './messages.ts'
import { type ResumedCall } from './resumed-run.ts'
import { type NormalisedInput } from './schemas.ts'
import { initialFold, snapshotEvents, stepFold, type TranscriptFold } from './snapshot.ts'

/** What is fixed at a run's start and stored with it (R11). */
export interface RunDetail {
  /** Registration that started the run; its configuration shapes the stream. */
  readonly mount: string
  readonly profile: Profile
  readonly skipped?: readonly SkippedPart[]
  readonly resumed?: readonly ResumedCall[]
  /** Digest of the answers that the run was started with: the same ones again are the same run. */
  readonly answers?: string
}

/** One registration of the plugin. */
interface Mount {
  readonly config: MappingConfig
  /** Whether its agents are given the page's tools. */
  readonly takesTools: boolean
  /** Told what was mended or left out of a run's stream, in constant words and once for each. */
  readonly warn: (run: RunRecord, reason: string) => void
}

/** Name of this protocol in every key of the store. */
const NAME = 'ag-ui'

const protocols = new WeakMap<RunEngine, AgUiProtocol>()

/**
 * AG-UI as the run engine sees it. Registrations that share an engine share the protocol, so that each finds the runs of the
 * others; what differs between them is looked up by the mount that a run was started from.
 */
export class AgUiProtocol implements RunProtocol<TranscriptFold> {
  readonly name = NAME
  // A pause ends the stream; the answers come with the thread's next run (R2).
  readonly resumesIn = 'session'
  // Clients make run ids up, each for its own thread.
  readonly idScope = 'session'
  readonly #mounts = new Map<string, Mount>()

  /** The protocol of an engine, made and registered when it is asked for first. */
  static of (engine: RunEngine): AgUiProtocol {
    const known = protocols.get(engine)
    if (known !== undefined) return known
    const protocol = new AgUiProtocol()
    engine.register(protocol)
    protocols.set(engine, protocol)
    return protocol
  }

  /** Adds a registration under the path it serves. */
  mount (path: string, mount: Mount): void {
    this.#mounts.set(path, mount)
  }

  /** What a run's record keeps of its request. */
  record (input: NormalisedInput, detail: RunDetail): Required<Pick<RunSpec, 'detail' | 'stored'>> {
    // Both came out of JSON, or are made of strings and numbers.
    return { detail: toJson(detail) as RunSpec['detail'] & object, stored: toJson(input) as RunSpec['stored'] & object }
  }

  project (run: RunRecord, execution: ExecutionInfo): Projection {
    const { profile, skipped = [], resumed = [] } = detailOf(run)
    const { config, warn } = this.#mountOf(run)
    return createProjection(config, {
      input: inputOf(run),
      profile,
      knownCalls: execution.knownCalls,
      skipped,
      resumed,
      clientTools: this.#clientTools(run),
      warn: (reason) => { warn(run, reason) }
    })
  }

  /**
   * A call of the page's own tool is answered by a message of the next run: it is no interrupt, unless the options say so (ag-ui 19.2). What has
   * no id could never be answered: its run fails, and the thread must not wait for it.
   */
  interruptId (pending: Pending, run: RunRecord): string | undefined {
    if (pendingId(pending).trim() === '') return undefined
    const { config } = this.#mountOf(run)
    if (pending.kind === 'external' && config.frontendToolOutcome === 'success') {
      const { name, metadata } = pending.toolCall
      const executor = isObject(metadata) ? metadata['executor'] : undefined
      if (executor === 'client' || (executor === undefined && this.#clientTools(run).has(name))) return undefined
    }
    return interruptId(pending)
  }

  readonly fold: RunFold<TranscriptFold> = {
    initial: (run) => initialFold(inputOf(run), detailOf(run).profile),
    step: (state, { data }) => stepFold(state, data),
    snapshot: (state) => snapshotEvents(state).map((event) => ({ data: JSON.stringify(event) }))
  }

  lost (_run: RunRecord, failure: RunFailure): { readonly data: string }[] {
    return [{ data: JSON.stringify(runError(failure.code, failure.message, Date.now())) }]
  }

  #mountOf (run: RunRecord): Mount {
    const { mount } = detailOf(run)
    const known = this.#mounts.get(mount)
    if (known === undefined) throw new Error(`No AG-UI plugin is registered at "${mount}".`)
    return known
  }

  #clientTools (run: RunRecord): ReadonlySet<string> {
    return new Set(this.#mountOf(run).takesTools ? inputOf(run).tools.map(({ name }) => name) : [])
  }
}

/** What is stored with a run of this protocol. */
export function detailOf (run: RunRecord): RunDetail {
  return run.detail as unknown as RunDetail // written by record()
}

/** The request of a run of this protocol, as it was run. */
export function inputOf (run: RunRecord): NormalisedInput {
  return run.input as unknown as NormalisedInput // written by record()
}
