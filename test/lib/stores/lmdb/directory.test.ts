import { open } from 'lmdb'
import { mkdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t from 'tap'
import { lmdbStore } from '../../../../lib/stores/lmdb/index.ts'
import { importLmdb } from '../../../../lib/stores/lmdb/package.ts'
import { dataDir } from '../../../helpers/data-dir.ts'

t.test('makes the directory with all above it, for its own user alone', async (t) => {
  const path = join(await dataDir(t), 'a', 'b')
  const store = await lmdbStore({ path })
  await store.close()
  t.ok((await readFile(join(path, 'data.mdb'))).length > 0)
})

t.test('says why a path can be no data directory', async (t) => {
  const path = await dataDir(t)
  await writeFile(path, 'x')
  await t.rejects(lmdbStore({ path }), { code: 'AGT_ERR_STORE_DIRECTORY', message: /it is a file/ })
  await t.rejects(lmdbStore({ path: join(path, 'below') }), { code: 'AGT_ERR_STORE_DIRECTORY' })
})

t.test('says so where nothing can be written', { skip: process.platform !== 'linux' }, async (t) => {
  await t.rejects(lmdbStore({ path: '/proc/self/store' }), { code: 'AGT_ERR_STORE_DIRECTORY' })
  await t.rejects(lmdbStore({ path: '/proc/self' }), { code: 'AGT_ERR_STORE_DIRECTORY' })
})

t.test('refuses a data file that is none, instead of reading it', async (t) => {
  for (const [name, content] of [['noise', Buffer.alloc(65_536, 7)], ['zeros', Buffer.alloc(65_536)], ['short', Buffer.from('abc')]] as const) {
    const path = join(dirname(await dataDir(t)), name)
    await mkdir(path)
    await writeFile(join(path, 'data.mdb'), content)
    await t.rejects(lmdbStore({ path }), { code: 'AGT_ERR_STORE_CORRUPT' }, name)
    await t.rejects(lmdbStore({ path }), { code: 'AGT_ERR_STORE_CORRUPT' }, 'and leaves the directory unlocked')
  }
})

t.test('refuses a data file that was cut off', async (t) => {
  const path = await dataDir(t)
  const store = await lmdbStore({ path })
  for (let n = 0; n < 50; n++) await store.kv.set({ owner: {}, space: 's', key: `${n}` }, 'x'.repeat(3_000), 60_000)
  await store.close()
  await truncate(join(path, 'data.mdb'), 9_000)
  await t.rejects(lmdbStore({ path }), { code: 'AGT_ERR_STORE_CORRUPT' })
})

t.test('refuses data of something else, and of a later version', async (t) => {
  const path = await dataDir(t)
  const other = open<Buffer, Buffer>({ path, noSubdir: false, keyEncoding: 'binary', encoding: 'binary' })
  await other.put(Buffer.from('theirs'), Buffer.from('1'))
  await other.close()
  await t.rejects(lmdbStore({ path }), { code: 'AGT_ERR_STORE_CORRUPT', message: /something else/ })
  const later = open<Buffer, Buffer>({ path, noSubdir: false, keyEncoding: 'binary', encoding: 'binary' })
  await later.put(Buffer.concat([Buffer.of(0x7f), Buffer.from('format')]), Buffer.from('99'))
  await later.close()
  await t.rejects(lmdbStore({ path }), { code: 'AGT_ERR_STORE_CORRUPT', message: /99/ })
})

t.test('says how to install the package where it is missing', async (t) => {
  await t.rejects(importLmdb(async () => { throw new Error('Cannot find package') }), { code: 'AGT_ERR_STORE_LMDB_MISSING', message: /npm install lmdb/ })
})

t.test('refuses options that can not be used, with their name', async (t) => {
  for (const [name, value] of [['path', ''], ['path', 7], ['sync', 'never'], ['maxBytes', 0], ['maxLogBytes', -1], ['endedTtlMs', 1.5], ['sweepMs', 1], ['now', 5]] as const) {
    await t.rejects(lmdbStore({ path: '/nowhere', [name]: value } as never), { code: 'AGT_ERR_OPTION_INVALID', message: new RegExp(name) })
  }
})
