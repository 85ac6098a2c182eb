import { type AddressInfo } from 'node:net'
import { type FastifyInstance } from 'fastify'

/**
 * Warns once when the server has begun to listen beyond loopback while nobody is asked who they are: then everybody who can reach
 * it shares one owner, and sees and stops everybody's runs.
 */
export function warnWhenOpen (app: FastifyInstance, warned: { isWarned: boolean }): void {
  app.addHook('onListen', (done) => {
    const open = app.addresses().find((at) => !isLoopback(at))
    if (open !== undefined && !warned.isWarned) {
      warned.isWarned = true
      app.log.warn({ address: open }, 'the server listens beyond loopback without getPrincipal: all callers share one owner')
    }
    done()
  })
}

/** A socket in the file system is no network. */
function isLoopback (at: AddressInfo | string): boolean {
  return typeof at === 'string' || at.address === '::1' || /^(::ffff:)?127\./.test(at.address)
}
