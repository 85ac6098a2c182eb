import { StoreUnavailableError, type Owner, type RunKey, type RunRecord } from '../stores/index.ts'
import { type Cause } from './ending.ts'
import { type RemoteCause } from './node-channel.ts'
import { type EngineParts } from './parts.ts'
import { type Resumer } from './resumer.ts'
import { ticketOf } from './ticket-data.ts'

/** Runs of a session that are looked at, newest first: more than this do not run or queue at once. */
const MAX_ACTIVE = 100

/** Ends runs by the protocol's verb, wherever they are executed. */
export class Stopper {
  readonly #parts: EngineParts
  readonly #resumer: Resumer

  constructor (parts: EngineParts, resumer: Resumer) {
    this.#parts = parts
    this.#resumer = resumer
  }

  /** Resolves when the run is over, or was over. Rejects when its owner does not answer and no other node has ended it in its place. */
  async stop (key: RunKey, cause: RemoteCause): Promise<void> {
    const { shelf, store, node, protocols } = this.#parts
    const driver = shelf.driver(key.id)
    if (driver?.isActive === true) {
      driver.end(cause)
      await driver.settled()
    }
    let record = await store.runs.get(key)
    if (record !== undefined && isActive(record) && record.node !== node) record = await this.#stopThere(record, cause)
    if (record?.state === 'waiting' && protocols.get(key.protocol)?.resumesIn !== 'session') await this.#resumer.end(record, cause)
  }

  /** Stops what runs or queues in a session, or that run alone. */
  async stopSession (owner: Owner, protocol: string, session: string, cause: RemoteCause, clientRunId?: string): Promise<'stopped' | 'unknown'> {
    const isMeant = (record: RunRecord): boolean => record.key.protocol === protocol && (clientRunId === undefined || record.clientId === clientRunId)
    const here = this.#parts.shelf.inSession(owner, session).filter((driver) => driver.isActive && isMeant(driver.record)).map(({ record }) => record)
    const stopThere = async (): Promise<number> => {
      const there = (await this.#activeElsewhere(owner, session)).filter(isMeant)
      await Promise.all(there.map(({ key }) => this.stop(key, cause)))
      return there.length
    }
    // What runs here is told at once, whether the store answers or not.
    const [count] = await Promise.all([stopThere(), ...here.map(({ key }) => this.stop(key, cause))])
    return here.length + count > 0 ? 'stopped' : 'unknown'
  }

  /** What stands in the way of a run that is to have the session: ends it here, and has other nodes end it there. */
  async supersede ({ key, session, createdAt }: RunRecord): Promise<void> {
    const { shelf, store, channel } = this.#parts
    const { owner, id } = key
    const cause: RemoteCause = { kind: 'interrupted', why: 'superseded' }
    for (const driver of shelf.inSession(owner, session)) {
      if (driver.record.key.id !== id) driver.end(cause)
    }
    for (const record of await this.#activeElsewhere(owner, session)) {
      // Of two that supersede each other the newer one stays.
      if (record.createdAt <= createdAt) channel.send(record.node, { kind: 'stop', run: record.key, cause })
    }
    const holder = await store.gates.holder(owner, session)
    if (holder?.parked !== true) return
    // Only a waiting run parks its ticket.
    const waiting = await store.runs.get({ owner, protocol: ticketOf(holder).protocol, id: holder.id })
    if (waiting !== undefined) await this.#resumer.end(waiting, cause)
  }

  /** Another node asks for it. */
  stopHere (key: RunKey, cause: Cause): void {
    this.#parts.shelf.driver(key.id)?.end(cause)
  }

  /** Asks the owner, again and again, until the run is over; what it leaves behind when it dies is ended by the reapers. */
  async #stopThere (record: RunRecord, cause: RemoteCause): Promise<RunRecord | undefined> {
    const { shelf, channel, leases, host } = this.#parts
    const { key } = record
    const run = await shelf.load(record)
    if (run === undefined) return undefined
    const ask = (): void => {
      if (isActive(run.record)) channel.send(run.record.node, { kind: 'stop', run: key, cause })
    }
    // As a reader, so that its end is seen here when it comes.
    const connection = run.connect()
    const again = setInterval(ask, Math.max(1, Math.floor(leases.leaseMs / 3)))
    let limit: NodeJS.Timeout | undefined
    try {
      ask()
      const late = new Promise<never>((_resolve, reject) => {
        limit = setTimeout(() => { reject(new StoreUnavailableError('signals.publish')) }, leases.leaseMs * 2 + host.patienceMs)
      })
      return await Promise.race([run.settled(), late])
    } finally {
      clearInterval(again)
      clearTimeout(limit)
      connection.close()
    }
  }

  async #activeElsewhere (owner: Owner, session: string): Promise<readonly RunRecord[]> {
    const { store, node } = this.#parts
    const { runs } = await store.index.list(owner, { session, states: ['pending', 'running'], limit: MAX_ACTIVE })
    return runs.filter((record) => record.node !== node)
  }
}

function isActive ({ state }: RunRecord): boolean {
  return state === 'pending' || state === 'running'
}
