import { type Peer } from './peer.ts'

/** The anchor: every ratio is to this peer. */
export const ANCHOR = 'raw-limit'

const LOADERS: Readonly<Record<string, () => Promise<Peer>>> = {
  'raw-limit': async () => (await import('./peers/raw-limit.ts')).rawLimit,
  '@fastify/sse': async () => (await import('./peers/fastify-sse.ts')).fastifySse,
  'fastify-sse-v2': async () => (await import('./peers/fastify-sse-v2.ts')).fastifySseV2,
  'better-sse': async () => (await import('./peers/better-sse.ts')).betterSse,
  '@ag-ui/encoder': async () => (await import('./peers/ag-ui-encoder.ts')).agUiEncoder,
  'event-stream': async () => (await import('./peers/event-stream.ts')).eventStreamPeer,
  'ag-ui': async () => (await import('./peers/ag-ui.ts')).agUiPeer,
  'ag-ui-redis': async () => (await import('./peers/ag-ui-redis.ts')).agUiRedisPeer,
  'ag-ui-nodes': async () => (await import('./peers/ag-ui-nodes.ts')).agUiNodesPeer,
  'ag-ui-lmdb': async () => (await import('./peers/ag-ui-lmdb.ts')).agUiLmdbPeer
}

/** Names of all peers, the anchor first. */
export const PEER_NAMES: readonly string[] = Object.keys(LOADERS)

/** Loads a peer's description. Its packages are loaded when it listens, not before. */
export async function loadPeer (name: string): Promise<Peer> {
  const load = LOADERS[name]
  if (load === undefined) throw new Error(`Unknown peer ${name}; there are: ${PEER_NAMES.join(', ')}.`)
  return load()
}
