import { IncomingMessage } from 'node:http'

const IS_UPGRADE = Symbol('isUpgrade')

/**
 * A request that is an upgrade only where it asks for CONNECT or a WebSocket. Java's HTTP client asks for `h2c` with every cleartext
 * request; node hands such a request to whoever listens for upgrades (@fastify/websocket, say) instead of serving it.
 */
class H2cSafeRequest extends IncomingMessage {
  // The base's constructor sets it: a private field would not be there yet.
  declare [IS_UPGRADE]: unknown

  // Asked after the headers were read; when it is set they were not.
  get upgrade (): boolean {
    return this[IS_UPGRADE] === true && (this.method === 'CONNECT' || /\bwebsocket\b/i.test(this.headers.upgrade ?? ''))
  }

  set upgrade (value: unknown) {
    this[IS_UPGRADE] = value
  }
}

/**
 * For `Fastify({ http: h2cSafeHttp })`, where Java clients and WebSockets share a cleartext server. A plugin cannot set this: the server is
 * made before it is registered.
 */
export const h2cSafeHttp = { IncomingMessage: H2cSafeRequest } as const
