// Reading server-sent events out of a fetch() response. EventSource would do it by itself, but it can neither POST nor set a header.

/**
 * Yields each event of a body as `{ id, data }` as soon as its blank line has come (WHATWG HTML, "Server-sent events").
 * Comments, such as the server's heartbeats, only keep the connection alive: they call `onBytes` and yield nothing.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @param {() => void} onBytes called whenever anything arrives
 */
export async function * readEvents (body, onBytes) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let id
  let data = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      // What was not ended by a blank line is not complete, and is not an event.
      if (done) return
      onBytes()
      const lines = (rest + value).split('\n')
      rest = lines.pop()
      for (const line of lines.map((text) => text.replace(/\r$/, ''))) {
        if (line === '') {
          if (data.length > 0) yield { id, data: data.join('\n') }
          id = undefined
          data = []
        } else if (line.startsWith('data:')) data.push(valueOf(line, 5))
        else if (line.startsWith('id:')) id = valueOf(line, 3)
      }
    }
  } finally {
    // Also when the consumer has had enough: the connection is given back.
    await reader.cancel().catch(() => {})
  }
}

/** A field's value, without the one blank that may stand in front of it. */
function valueOf (line, start) {
  return line.slice(line[start] === ' ' ? start + 1 : start)
}
