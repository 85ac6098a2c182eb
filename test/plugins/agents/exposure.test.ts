import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import Fastify from 'fastify'
import { agUi } from '../../../plugins/ag-ui/index.ts'
import { agents, type GetPrincipal } from '../../../plugins/agents/index.ts'
import { steered } from '../../helpers/steered-agent.ts'

const SENTENCE = 'the server listens beyond loopback without getPrincipal: all callers share one owner'

/** The warnings of a server that listens there. */
async function warnings (t: Test, listen: { readonly host?: string, readonly path?: string }, options: { readonly shared?: GetPrincipal, readonly own?: GetPrincipal, readonly alone?: boolean } = {}): Promise<string[]> {
  const lines: { level: number, msg: string }[] = []
  const app = Fastify({ logger: { level: 'info', stream: { write: (line: string) => { lines.push(JSON.parse(line) as typeof lines[number]) } } } })
  const agent = steered()
  if (options.alone !== true) await app.register(agents, { agents: { agent }, ...options.shared !== undefined && { getPrincipal: options.shared } })
  for (const prefix of ['/one', '/two']) await app.register(agUi, { prefix, agents: { agent }, ...options.own !== undefined && { getPrincipal: options.own } })
  await app.listen({ ...listen, ...listen.path === undefined && { port: 0 } })
  await app.close()
  return lines.filter(({ level }) => level === 40).map(({ msg }) => msg)
}

const someone: GetPrincipal = () => ({ id: 'ann' })

t.test('a server that everybody can reach and that asks nobody who they are says so once, when it listens', async (t) => {
  t.strictSame(await warnings(t, { host: '0.0.0.0' }), [SENTENCE])
  t.strictSame(await warnings(t, { host: '::' }), [SENTENCE])
})

t.test('it says nothing on loopback, on a socket in the file system, or where callers are told apart', async (t) => {
  for (const host of ['127.0.0.1', 'localhost', '::1']) t.strictSame(await warnings(t, { host }), [], host)
  t.strictSame(await warnings(t, { path: join(tmpdir(), `fastify-agents-${process.pid}.sock`) }), [])
  t.strictSame(await warnings(t, { host: '0.0.0.0' }, { shared: someone }), [])
  t.strictSame(await warnings(t, { host: '0.0.0.0' }, { own: someone }), [])
  t.strictSame(await warnings(t, { host: '0.0.0.0' }, { own: someone, alone: true }), [])
})

t.test('protocols with an engine each are warned of one by one', async (t) => {
  t.strictSame(await warnings(t, { host: '0.0.0.0' }, { alone: true }), [SENTENCE, SENTENCE])
})
