import { createHash } from 'node:crypto'
import { type Run } from '../../lib/runs/index.ts'
import { type Owner } from '../../lib/stores/index.ts'
import { detailOf } from './protocol.ts'
import { type NormalisedInput } from './schemas.ts'
import { type AgUiScope } from './scope.ts'

/** What a request is recognised by. */
export interface Prints {
  /** Digest of all that the run depends on. */
  readonly request: string
  /** Digest of what it answers and in which conversation, whatever the run is called; undefined where it answers nothing. */
  readonly answers?: string
}

/** Makes the digests; members of an object are taken in their order, as a client repeats its own text. */
export function printsOf (mount: string, agentId: string, input: NormalisedInput): Prints {
  const { resume = [], messages } = input
  const answers = [...resume].sort((a, b) => a.interruptId < b.interruptId ? -1 : 1)
  return {
    request: digest([mount, agentId, input]),
    ...answers.length > 0 && { answers: digest([mount, agentId, messages, answers]) }
  }
}

/**
 * The run that the same answers have started already: a second press of a button is shown what the first one did, and nothing is done twice
 * (ag-ui 20.5, row 8).
 */
export async function findAnswered ({ host, protocol }: AgUiScope, owner: Owner, threadId: string, prints: Prints): Promise<Run | undefined> {
  if (prints.answers === undefined) return undefined
  const last = await host.engine.lastOf(owner, protocol.name, threadId)
  return last !== undefined && detailOf(last.record).answers === prints.answers ? last : undefined
}

function digest (value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url')
}
