import { createHash } from 'node:crypto'

/** A Lua script, known to Redis by its digest once it has run there. */
export class Script {
  readonly text: string
  readonly sha: string

  constructor (...parts: readonly string[]) {
    this.text = parts.join('\n')
    this.sha = createHash('sha1').update(this.text).digest('hex')
  }
}
