// Installs the real clients that the tests under test/clients/ drive. Each folder is a package of its own, because the
// clients conflict in one tree, and is installed again only when its lock has changed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('.', import.meta.url))

for (const entry of readdirSync(root, { withFileTypes: true })) {
  const folder = join(root, entry.name)
  const lock = join(folder, 'package-lock.json')
  if (!entry.isDirectory() || !existsSync(lock)) continue

  const digest = createHash('sha256').update(readFileSync(lock)).digest('hex')
  const stamp = join(folder, 'node_modules', '.lock-digest')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) continue

  console.log(`Installing the clients in test/clients/${entry.name}`)
  const npm = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'inherit' })
  if (npm.status !== 0) process.exit(npm.status ?? 1)
  writeFileSync(stamp, digest)
}
