import { type Ownership } from '../stores/index.ts'
import { drive } from './drive.ts'
import { type Driver } from './driver.ts'
import { type EngineParts } from './parts.ts'
import { type ReplayLimits } from './spec.ts'
import { StoredRun } from './stored-run.ts'

/** The driver of a run whose ownership was just taken: the one that paused here, or a new one on what the store holds. `undefined` when that is gone. */
export async function takeUp (parts: EngineParts, { record, last }: Ownership, replay: ReplayLimits): Promise<Driver | undefined> {
  const { shelf, protocols } = parts
  const here = shelf.driver(record.key.id)
  if (here !== undefined && here.topic.last === last) return here
  const run = here === undefined ? await shelf.load(record) : await shelf.replace(here, record)
  const protocol = protocols.get(record.key.protocol)
  if (!(run instanceof StoredRun) || protocol === undefined) return undefined
  const driver = drive(parts, protocol, record, run.topic, replay, run.fold)
  shelf.add(driver)
  here?.handOver(driver)
  return driver
}
