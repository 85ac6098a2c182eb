import { readdirSync } from 'node:fs'
import t from 'tap'

/** Host plugins: they have no runs of their own to be asked for. */
const HOSTS = ['agents', 'event-stream']

t.test('every protocol plugin has its rows in the ownership matrix', (t) => {
  const plugins = readdirSync(new URL('../../plugins/', import.meta.url)).filter((name) => !HOSTS.includes(name))
  const tables = readdirSync(new URL('.', import.meta.url)).filter((name) => name.endsWith('.test.ts')).map((name) => name.replace('.test.ts', ''))
  t.ok(plugins.includes('ag-ui'))
  t.strictSame(plugins.filter((name) => !tables.includes(name)), [])
  t.end()
})
