import { TaskError } from './errors.ts'

const MAX_PATH = 1_024
const MAX_SEGMENT = 255

/**
 * Reads the path of a file inside a workspace: relative, with `/` alone between its parts, and none of them going up.
 * @throws AGT_ERR_TASK_INVALID_PATH
 */
export function readArtifactPath (path: string): string {
  const segments = path.split('/')
  const isUsable = path !== '' && path.length <= MAX_PATH && path.isWellFormed() && !hasControls(path) && !path.includes('\\') &&
    segments.every((segment) => segment !== '' && segment !== '.' && segment !== '..' && Buffer.byteLength(segment) <= MAX_SEGMENT)
  if (!isUsable) throw new TaskError('invalid_path', 'a path is relative, without empty, . or .. parts, backslashes or control characters')
  return path
}

function hasControls (text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x20 || code === 0x7f) return true
  }
  return false
}
