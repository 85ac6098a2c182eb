import { join, resolve } from 'node:path'
import { type FastifyInstance } from 'fastify'
import { InvalidOptionError } from '../../lib/options.ts'
import { type Store } from '../../lib/stores/index.ts'
import { lmdbStore } from '../../lib/stores/lmdb/index.ts'
import { type AgentsOptions } from '../agents/options.ts'

/** Where the reference keeps its tasks. */
const DEFAULT_PATH = join('.agentscope', 'agent-protocol')

/** Reads `taskStorePath`: blank counts as true, as in the reference. @throws AGT_ERR_OPTION_INVALID */
export function readTaskStorePath (value: string | true | undefined): string | undefined {
  if (value === undefined) return undefined
  if (value !== true && typeof value !== 'string') throw new InvalidOptionError('taskStorePath', String(value), 'it is the path of a directory, or true')
  return resolve(value === true || value.trim() === '' ? DEFAULT_PATH : value)
}

/** Opens the store of a plugin that stands alone; it is closed after everything that uses it. @throws AGT_ERR_OPTION_INVALID, AGT_ERR_STORE_LOCKED */
export async function openTaskStore (app: FastifyInstance, path: string, { store: given }: Pick<AgentsOptions, 'store'>): Promise<Store> {
  if (given !== undefined) throw new InvalidOptionError('taskStorePath', path, 'a store is given too')
  if (app.hasDecorator('agents')) throw new InvalidOptionError('taskStorePath', path, 'the store is that of the `agents` plugin, which is registered')
  const store = await lmdbStore({ path: join(path, 'runs') })
  app.addHook('onClose', () => store.close())
  return store
}
