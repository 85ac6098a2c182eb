import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { lmdbStore } from '../../../../lib/stores/lmdb/index.ts'
import { aRun } from '../../../../lib/stores/conformance/harness.ts'
import { dataDir } from '../../../helpers/data-dir.ts'
import { LineChild } from '../../../helpers/line-child.ts'

const script = new URL('../../../fixtures/lmdb-owner.ts', import.meta.url)

t.test('a second store in the same process is refused, until the first is closed', async (t) => {
  const path = await dataDir(t)
  const first = await lmdbStore({ path })
  await t.rejects(lmdbStore({ path }), { code: 'AGT_ERR_STORE_LOCKED', message: /another store of this process/ })
  await first.kv.set({ owner: {}, space: 's', key: 'k' }, 1, 60_000)
  await first.close()
  await first.close()
  const second = await lmdbStore({ path })
  t.equal(await second.kv.get({ owner: {}, space: 's', key: 'k' }), 1)
  await second.close()
})

t.test('another process is refused, and one that was killed leaves no lock behind', async (t) => {
  const path = await dataDir(t)
  const owner = new LineChild(t, script, [path])
  t.equal(await owner.line(), 'owner')
  const rival = new LineChild(t, script, [path])
  t.equal(await rival.line(), 'AGT_ERR_STORE_LOCKED')
  await t.rejects(lmdbStore({ path }), { code: 'AGT_ERR_STORE_LOCKED', message: new RegExp(`the process ${owner.process.pid}`) })
  await owner.kill()
  const store = await lmdbStore({ path })
  t.same((await readdir(path)).filter((name) => name.startsWith('socket')).length, 1, 'what the dead owner left is cleaned up')
  await store.close()
})

t.test('of several who find a dead owner at once, one succeeds it', async (t) => {
  const path = await dataDir(t)
  const owner = new LineChild(t, script, [path])
  t.equal(await owner.line(), 'owner')
  await owner.kill()
  const results = await Promise.allSettled(Array.from({ length: 6 }, async () => await lmdbStore({ path })))
  const stores = results.flatMap((result) => result.status === 'fulfilled' ? [result.value] : [])
  const codes = results.flatMap((result) => result.status === 'rejected' ? [(result.reason as { code?: string }).code] : [])
  t.equal(stores.length, 1)
  t.same(new Set(codes), new Set(['AGT_ERR_STORE_LOCKED']))
  for (const store of stores) await store.close()
})

t.test('a path that is too long for a socket is no hindrance on Linux', { skip: process.platform !== 'linux' }, async (t) => {
  const path = join(await dataDir(t), 'x'.repeat(120))
  const store = await lmdbStore({ path })
  await t.rejects(lmdbStore({ path }), { code: 'AGT_ERR_STORE_LOCKED' })
  await store.close()
})

t.test('foreign files in the directory do not matter', async (t) => {
  const path = await dataDir(t)
  await mkdir(join(path, 'owner-x'), { recursive: true })
  const store = await lmdbStore({ path })
  await store.close()
})

t.test('a store that is closed answers nothing', async (t) => {
  const store = await lmdbStore({ path: await dataDir(t) })
  const { key } = aRun()
  const last = store.kv.set({ owner: {}, space: 's', key: 'k' }, 1, 60_000)
  await store.close()
  await last
  for (const call of [() => store.runs.get(key), () => store.log.read(key, 0, 1), () => store.log.append(key, 1, 1, [{ seq: 1, data: '' }]), () => store.index.list({}, { limit: 1 })]) {
    await t.rejects(call() as Promise<unknown>, { code: 'AGT_ERR_STORE_CLOSED' })
  }
})
