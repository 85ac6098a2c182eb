import multipart, { type MultipartFile } from '@fastify/multipart'
import { type FastifyInstance, type FastifyRequest } from 'fastify'
import { TaskError } from './errors.ts'
import { type NewArtifact } from './workspace.ts'

/** Lets the routes of a scope take files; the host's own parser stands where there is one. */
export async function acceptUploads (app: FastifyInstance): Promise<void> {
  if (!app.hasContentTypeParser('multipart/form-data')) await app.register(multipart)
}

/**
 * Reads a form of one `file` and, in any place, `relative_path`: a directory for the file where it ends with a slash, its whole path otherwise.
 * @throws AGT_ERR_TASK_INVALID_BODY, AGT_ERR_TASK_PAYLOAD_TOO_LARGE
 */
export async function readUpload (request: FastifyRequest, maxBytes: number): Promise<NewArtifact> {
  if (!request.isMultipart()) throw new TaskError('unsupported_media_type', 'a file comes as multipart/form-data')
  let file: MultipartFile | undefined
  let body: Buffer | undefined
  let relativePath: string | undefined
  for await (const part of request.parts({ limits: { fileSize: maxBytes, files: 1, fields: 10, fieldSize: 4_096 } })) {
    if (part.type === 'file') {
      file = part
      body = await part.toBuffer()
    } else if (part.fieldname === 'relative_path' && typeof part.value === 'string') {
      relativePath = part.value
    }
  }
  if (file === undefined || body === undefined) throw new TaskError('invalid_body', 'the form has a part "file"')
  return { path: pathOf(file.filename, relativePath), body, mime: file.mimetype }
}

function pathOf (filename: string, relativePath: string | undefined): string {
  // A browser's or a tool's own directories are nobody's business here.
  const name = filename.split(/[\\/]/).at(-1) ?? ''
  const path = relativePath?.trim().replace(/^\.\//, '') ?? ''
  if (path === '' || path === '.') return name
  return path.endsWith('/') ? `${path}${name}` : path
}
