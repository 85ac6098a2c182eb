import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Test } from 'tap'
import ts from 'typescript'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * A script and all that it imports of ours as plain JavaScript in a directory of its own: for a test that starts it so often that a
 * loader for TypeScript would take most of the time.
 */
export async function transpiled (t: Test, script: URL): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'transpiled-'))
  t.teardown(async () => { await rm(folder, { recursive: true }) })
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const seen = new Set<string>()
  const add = async (file: string): Promise<void> => {
    if (seen.has(file)) return
    seen.add(file)
    const { outputText } = ts.transpileModule(await readFile(file, 'utf8'), { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 } })
    const target = targetOf(folder, file)
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, outputText.replaceAll(/(from\s+|import\s+)'(\.[^']*)\.ts'/g, "$1'$2.js'"))
    for (const [, path] of outputText.matchAll(/(?:from|import)\s+'(\.[^']*\.ts)'/g)) await add(join(dirname(file), `${path}`))
  }
  const entry = fileURLToPath(script)
  await add(entry)
  return pathToFileURL(targetOf(folder, entry))
}

function targetOf (folder: string, file: string): string {
  return join(folder, relative(root, file)).replace(/\.ts$/, '.js')
}
