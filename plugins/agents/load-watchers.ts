import { MissingPackageError } from './errors.ts'
import { type ResolvedPluginOptions } from './options.ts'
import { type Watcher } from './watcher.ts'

/** Loads what the options ask for, and nothing else: its packages are optional peers. @throws AGT_ERR_PACKAGE_MISSING */
export async function loadWatchers ({ metrics, tracing }: ResolvedPluginOptions): Promise<readonly Watcher[]> {
  const watchers: Watcher[] = []
  if (metrics !== undefined) {
    const { Metrics } = await load('metrics', 'prom-client', () => import('./metrics.ts'))
    watchers.push(new Metrics(metrics.path))
  }
  if (tracing) {
    const { Tracing } = await load('tracing', '@opentelemetry/api', () => import('./tracing.ts'))
    watchers.push(new Tracing())
  }
  return watchers
}

async function load<Module> (option: string, name: string, work: () => Promise<Module>): Promise<Module> {
  try {
    return await work()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ERR_MODULE_NOT_FOUND' && message.includes(`'${name}'`)) throw new MissingPackageError(option, name, { cause: error })
    throw error
  }
}
