import type { JsonValue } from '../../agent/json.ts'
import type { SignalChannel, Unsubscribe } from '../signals.ts'
import type { Store } from '../store.ts'
import { aRun, type Cases } from './harness.ts'

/** A subscriber that keeps what it got and can wait for more. */
class Listener {
  readonly messages: JsonValue[] = []
  readonly #waiters: { readonly count: number, resolve (): void }[] = []

  static async on (store: Store, channel: SignalChannel): Promise<{ readonly listener: Listener, readonly unsubscribe: Unsubscribe }> {
    const listener = new Listener()
    return { listener, unsubscribe: await store.signals.subscribe(channel, listener) }
  }

  message (message: JsonValue): void {
    this.messages.push(message)
    this.#wake()
  }

  /** Resolves when there are `count` messages. */
  async until (count: number): Promise<readonly JsonValue[]> {
    await new Promise<void>((resolve) => {
      this.#waiters.push({ count, resolve })
      this.#wake()
    })
    return this.messages
  }

  #wake (): void {
    for (const { count, resolve } of this.#waiters) if (this.messages.length >= count) resolve()
  }
}

/** Messages between nodes (R7). */
export const signalCases: Cases = {
  'tells every subscriber of a channel, in order, on either connection': async (t, { store, peer }) => {
    const channel = { kind: 'run', key: aRun().key } as const
    const here = await Listener.on(store, channel)
    const there = await Listener.on(peer, channel)
    const wanted: JsonValue[] = []
    for (let n = 0; n < 20; n++) {
      wanted.push({ n, list: [], text: '\u2028 \ud83d\ude00' })
      await store.signals.publish(channel, { n, list: [], text: '\u2028 \ud83d\ude00' })
    }
    t.same(await here.listener.until(20), wanted)
    t.same(await there.listener.until(20), wanted)
    here.unsubscribe()
    there.unsubscribe()
  },

  'keeps channels apart': async (t, { store, peer }) => {
    const { key } = aRun()
    const channels: readonly SignalChannel[] = [
      { kind: 'run', key },
      { kind: 'run', key: { ...key, id: 'other' } },
      { kind: 'run', key: { ...key, owner: {} } },
      { kind: 'node', node: key.id },
      { kind: 'node', node: 'node-b' },
      { kind: 'gate', owner: key.owner, session: key.id },
      { kind: 'gate', owner: {}, session: key.id },
      { kind: 'gate', owner: key.owner, session: 'node-b' }
    ]
    const joined = await Promise.all(channels.map((channel) => Listener.on(peer, channel)))
    for (const [index, channel] of channels.entries()) await store.signals.publish(channel, index)
    for (const [index, { listener, unsubscribe }] of joined.entries()) {
      t.same(await listener.until(1), [index])
      unsubscribe()
    }
  },

  'tells nobody after it has unsubscribed, and each subscription by itself': async (t, { store, peer }) => {
    const channel = { kind: 'node', node: 'node-a' } as const
    await store.signals.publish(channel, 'before anybody listens')
    const listener = new Listener()
    const first = await peer.signals.subscribe(channel, listener)
    const second = await peer.signals.subscribe(channel, listener)
    await store.signals.publish(channel, 1)
    t.same(await listener.until(2), [1, 1], 'one handler, two subscriptions')
    first()
    first()
    await store.signals.publish(channel, 2)
    t.same(await listener.until(3), [1, 1, 2])
    second()
    const other = await Listener.on(peer, channel)
    await store.signals.publish(channel, 3)
    t.same(await other.listener.until(1), [3])
    other.unsubscribe()
    t.same(listener.messages, [1, 1, 2])
  },

  'delivers after publish has been called, never within it': async (t, { store }) => {
    const channel = { kind: 'node', node: 'node-a' } as const
    const { listener, unsubscribe } = await Listener.on(store, channel)
    const published = store.signals.publish(channel, 1)
    t.same(listener.messages, [])
    const arrived = listener.until(1)
    await published
    t.same(await arrived, [1])
    unsubscribe()
  }
}
