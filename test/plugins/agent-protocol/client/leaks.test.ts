import { readFile } from 'node:fs/promises'
import t from 'tap'
import { runScript } from '../../../helpers/child.ts'
import { type Leftovers } from '../../../helpers/leaks.ts'

// A machine that is busy with other files takes its time.
t.setTimeout(240_000)

t.test('three thousand runs that end, are aborted, left, refused or cut leave no listener, timer, socket or heap behind', async (t) => {
  const figures = await runScript(new URL('load/runs.ts', import.meta.url)) as Leftovers & { outcomes: unknown, signalListeners: number }
  t.comment(JSON.stringify(figures))
  t.strictSame(figures.outcomes, {
    'ends ended': 500, 'aborts AbortError': 500, 'leaves left': 500, 'fails remote_failed': 500, 'cut ended': 500, 'refused remote_unauthorized': 500
  })
  t.equal(figures.signalListeners, 0)
  t.strictSame(figures.handles[1], figures.handles[0])
  t.equal(figures.listeners[1], figures.listeners[0])
  t.strictSame(figures.left, [], 'nothing is there more often than before')
  t.ok(figures.heapGrowth < 2 * 1024 * 1024, `the heap has grown by ${figures.heapGrowth} bytes`)
})

t.test('the client loads neither Fastify nor anything of a server', async (t) => {
  const packages = new Set<string>()
  const files = new Set<string>()
  const walk = async (file: URL): Promise<void> => {
    if (files.has(file.href)) return
    files.add(file.href)
    const text = await readFile(file, 'utf8')
    for (const [, isType, name = ''] of text.matchAll(/^(?:import|export) (type )?[^'\n]*(?:\n[^']*?)?from '([^']+)'/gm)) {
      if (isType !== undefined) continue
      if (name.startsWith('.')) await walk(new URL(name, file))
      else packages.add(name)
    }
  }
  await walk(new URL('../../../../plugins/agent-protocol/client/index.ts', import.meta.url))
  t.strictSame([...packages].filter((name) => !name.startsWith('node:')).sort(), [
    '@cfworker/json-schema', '@fastify/error', '@sinclair/typebox', '@sinclair/typebox/compiler', '@sinclair/typebox/value', 'eventsource-parser'
  ])
  t.strictSame([...packages].filter((name) => name.startsWith('node:')).sort(), ['node:crypto', 'node:http', 'node:https'])
  const rooms = new Set([...files].map((file) => file.replace(/.*\/(lib|plugins)\//, '$1/').replace(/\/[^/]+$/, '')))
  t.strictSame([...rooms].sort(), ['lib', 'lib/agent', 'lib/net', 'plugins/agent-protocol', 'plugins/agent-protocol/client'])
})
