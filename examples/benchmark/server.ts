import { setTimeout as sleep } from 'node:timers/promises'
import { answerParent, tellParent } from './answering.ts'
import { type ServerCommand, type ServerStart } from './messages.ts'
import { Meter } from './meter.ts'
import { loadPeer } from './peers.ts'
import { publish } from './publisher.ts'

/** A peer's server in a process of its own: `server.ts '{"peer":…,"setup":…}'`. */
const { peer: name, setup } = JSON.parse(process.argv[2] ?? '') as ServerStart
const peer = await loadPeer(name)
const endpoint = await peer.listen(setup)
const meter = new Meter()

answerParent<ServerCommand>(async (command) => {
  switch (command.do) {
    case 'begin': return meter.begin(command.gc)
    case 'end': return meter.end(command.gc)
    case 'publish': return publish(endpoint, command.plan)
    case 'subscribers': return waitForSubscribers(command.count, command.boundMs)
  }
})
tellParent({ id: 0, value: { port: endpoint.port, lastEventId: endpoint.lastEventId } })

async function waitForSubscribers (count: number, boundMs: number): Promise<number> {
  const deadline = performance.now() + boundMs
  while (endpoint.subscribers() !== count && performance.now() < deadline) await sleep(20)
  return endpoint.subscribers()
}
