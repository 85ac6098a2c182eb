import { type Pending, toJson } from '../../lib/agent/index.ts'
import { type ExecutionInfo, type Projection, type RunEngine, type RunFailure, type RunFold, type RunProtocol, type RunSpec } from '../../lib/runs/index.ts'
import { type RunRecord } from '../../lib/stores/index.ts'
import { type MappingConfig } from './config.ts'
import { runError } from './errors.ts'
import { createProjection } from './events.ts'
import { type Profile } from './input.ts'
import { interruptId } from './interrupts.ts'
import { type SkippedPart } from './messages.ts'
import { type NormalisedInput } from './schemas.ts'
import { initialFold, snapshotEvents, stepFold, type TranscriptFold } from './snapshot.ts'

/** What is fixed at a run's start and stored with it (R11). */
interface RunDetail {
  /** Registration that started the run; its configuration shapes the stream. */
  readonly mount: string
  readonly profile: Profile
  readonly skipped?: readonly SkippedPart[]
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
  readonly #configs = new Map<string, MappingConfig>()

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
  mount (mount: string, config: MappingConfig): void {
    this.#configs.set(mount, config)
  }

  /** What a run's record keeps of its request. */
  record (mount: string, input: NormalisedInput, profile: Profile, skipped: readonly SkippedPart[]): Required<Pick<RunSpec, 'detail' | 'stored'>> {
    const detail: RunDetail = { mount, profile, ...skipped.length > 0 && { skipped } }
    // Both came out of JSON, or are made of strings and numbers.
    return { detail: toJson(detail) as RunSpec['detail'] & object, stored: toJson(input) as RunSpec['stored'] & object }
  }

  project (run: RunRecord, execution: ExecutionInfo): Projection {
    const { mount, profile, skipped = [] } = detailOf(run)
    const config = this.#configs.get(mount)
    if (config === undefined) throw new Error(`No AG-UI plugin is registered at "${mount}".`)
    return createProjection(config, { input: inputOf(run), profile, knownCalls: execution.knownCalls, skipped })
  }

  interruptId (pending: Pending): string {
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
}

function detailOf (run: RunRecord): RunDetail {
  return run.detail as unknown as RunDetail // written by record()
}

function inputOf (run: RunRecord): NormalisedInput {
  return run.input as unknown as NormalisedInput // written by record()
}
