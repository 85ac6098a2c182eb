import t from 'tap'
import { runScript } from '../../../helpers/child.ts'

t.test('a thousand random disconnects, each resumed from the last id, give the uninterrupted stream byte for byte', async (t) => {
  const result = await runScript(new URL('load/disconnects.ts', import.meta.url), '20')
  t.match(result, { cuts: 1_000, runs: 10, equal: 10, bytes: Number })
})
