import { constants, type Dirent } from 'node:fs'
import { open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { defineTool, type Tool } from 'fastify-agents/agent'

const MAX_BYTES = 64 * 1024
const MAX_FILES = 100

const FileName = Type.String({ pattern: '^[\\w-][\\w. -]{0,99}$', description: 'A plain file name: letters, digits, dot, dash, blank.' })

/** Tools that work in one folder and never leave it: names hold no separators, links are not followed. Changes need approval. */
export function fileTools (folder: string): readonly Tool[] {
  return [
    defineTool({
      name: 'list_files',
      description: 'List the files.',
      parameters: Type.Object({}),
      execute: async () => {
        const names = (await files(folder)).map(({ name }) => name).sort()
        return names.length === 0 ? 'There are no files.' : names.join('\n')
      }
    }),
    defineTool({
      name: 'read_file',
      description: 'Read a file.',
      parameters: Type.Object({ name: FileName }),
      execute: async ({ name }) => {
        await using file = await openIn(folder, name, constants.O_RDONLY)
        const { size } = await file.handle.stat()
        if (size > MAX_BYTES) throw new Error(`"${name}" has ${size} bytes; ${MAX_BYTES} can be read.`)
        return await file.handle.readFile('utf8')
      }
    }),
    defineTool({
      name: 'write_file',
      description: 'Write a file; what it held is replaced.',
      parameters: Type.Object({ name: FileName, text: Type.String({ maxLength: MAX_BYTES }) }),
      needsApproval: true,
      execute: async ({ name, text }) => {
        const known = await files(folder)
        if (known.length >= MAX_FILES && !known.some((file) => file.name === name)) throw new Error(`The folder is full: it holds ${MAX_FILES} files.`)
        await using file = await openIn(folder, name, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC)
        await file.handle.writeFile(text)
        return `Wrote ${Buffer.byteLength(text)} bytes to "${name}".`
      }
    }),
    defineTool({
      name: 'delete_file',
      description: 'Delete a file.',
      parameters: Type.Object({ name: FileName }),
      needsApproval: true,
      execute: async ({ name }) => {
        await unlink(join(folder, name)).catch((error: unknown) => { throw readable(error, name) })
        return `Deleted "${name}".`
      }
    })
  ]
}

async function files (folder: string): Promise<Dirent[]> {
  return (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isFile())
}

async function openIn (folder: string, name: string, flags: number) {
  const handle = await open(join(folder, name), flags | constants.O_NOFOLLOW, 0o600).catch((error: unknown) => { throw readable(error, name) })
  return { handle, [Symbol.asyncDispose]: () => handle.close() }
}

/** What a person understands, without the machine's paths. */
function readable (error: unknown, name: string): Error {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return new Error(`There is no file "${name}".`)
  return new Error(`"${name}" cannot be used (${code ?? 'unknown error'}).`, { cause: error })
}
