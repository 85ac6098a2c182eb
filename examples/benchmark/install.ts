import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The folder of this benchmark, also where it was compiled into `.build` there. */
const FOLDER = new URL(import.meta.url.includes('/.build/') ? '../../../' : './', import.meta.url)
const LOCK = new URL('./package-lock.json', FOLDER)
const INSTALLED = new URL('./node_modules/.installed-lock', FOLDER)

/** Installs the peers' packages on first use, and again only when their lock has changed. */
export function installPeers (): void {
  const wanted = createHash('sha256').update(readFileSync(LOCK)).digest('hex')
  if (readIfPresent(INSTALLED) === wanted) return
  process.stderr.write('Installing the peers of examples/benchmark ...\n')
  const { status } = spawnSync('npm', ['ci', '--prefix', fileURLToPath(FOLDER), '--ignore-scripts', '--no-audit', '--no-fund'], { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('The peers could not be installed; `--peers raw-limit` needs none.')
  writeFileSync(INSTALLED, wanted)
}

/** The version of a package that the peers have installed, or undefined. */
export function installedVersion (name: string): string | undefined {
  const text = readIfPresent(new URL(`./node_modules/${name}/package.json`, FOLDER))
  return text === undefined ? undefined : (JSON.parse(text) as { version: string }).version
}

function readIfPresent (file: URL): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
