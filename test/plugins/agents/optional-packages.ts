// Run in a process of its own: registers the plugin, and says which of the optional packages were loaded or missed.
import { createRequire, register } from 'node:module'
import Fastify from 'fastify'

const [, , mode = '', option = ''] = process.argv
const hook = `export async function resolve (name, context, next) {
  if (name === 'prom-client' || name === '@opentelemetry/api') {
    throw Object.assign(new Error("Cannot find package '" + name + "' imported from here"), { code: 'ERR_MODULE_NOT_FOUND' })
  }
  return next(name, context)
}`
if (mode === 'missing') register(`data:text/javascript,${encodeURIComponent(hook)}`)

const { agents } = await import('../../../plugins/agents/index.ts')
const { agUi } = await import('../../../plugins/ag-ui/index.ts')
const app = Fastify()
const options = { metrics: { metrics: { path: '/metrics' } }, tracing: { tracing: true }, none: {} }[option] ?? {}
let error: unknown
try {
  await app.register(agents, { agents: { a: { name: 'a', async * stream () {} } }, ...options })
  await app.register(agUi)
  await app.ready()
} catch (thrown) {
  const { code, message } = thrown as NodeJS.ErrnoException
  error = { code, message }
}
await app.close()
const loaded = Object.keys(createRequire(import.meta.url).cache).flatMap((path) => /node_modules\/(prom-client|@opentelemetry\/api)\//.exec(path)?.[1] ?? [])
console.log(JSON.stringify({ error: error ?? null, loaded: [...new Set(loaded)] }))
