import { once } from 'node:events'
import { Agent, type ServerResponse } from 'node:http'
import fc from 'fast-check'
import t from 'tap'
import { sendRequest, type SseMessage, SseReader, type SseReaderOptions } from '../../../lib/net/index.ts'
import { listen } from '../../helpers/http-server.ts'

interface Stream { readonly reader: SseReader, readonly response: ServerResponse }

async function server (t: { teardown (fn: () => unknown): unknown }): Promise<(options?: Partial<SseReaderOptions> & { signal?: AbortSignal }) => Promise<Stream>> {
  const opened: ServerResponse[] = []
  const { url } = await listen(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    opened.push(response)
  })
  return async ({ signal, ...options } = {}) => {
    const answer = await sendRequest({ method: 'GET', url: new URL(url), headersTimeoutMs: 5_000, agent: new Agent(), signal })
    const response = opened.shift()
    if (response === undefined) throw new Error('The server saw no request')
    return { response, reader: new SseReader(answer, { maxEventBytes: 1_000, idleMs: 5_000, ...options }) }
  }
}

async function all (reader: SseReader): Promise<SseMessage[]> {
  const messages: SseMessage[] = []
  for await (const message of reader) messages.push(message)
  return messages
}

t.test('reads ids, names, data of several lines; skips comments; leaves an unfinished event out', async (t) => {
  const open = await server(t)
  const { reader, response } = await open()
  response.end(': hello\n\nretry: 2000\nid: 1\nevent: a\ndata: {"x":1}\n\ndata: b\r\ndata: c\r\n\r\nid: 9\ndata: cut off\n')
  t.strictSame(await all(reader), [
    { id: '1', event: 'a', data: '{"x":1}' },
    { id: undefined, event: undefined, data: 'b\nc' }
  ])
  t.equal(reader.retryMs, 2_000)
})

t.test('gives the same events however the bytes are cut up', async (t) => {
  const open = await server(t)
  const text = fc.array(fc.oneof(fc.constantFrom('ü', '\u{1f600}', 'x', ' ', ':'), fc.string({ maxLength: 3 }).map((part) => part.replaceAll(/[\r\n]/g, ''))), { maxLength: 6 }).map((parts) => parts.join(''))
  await fc.assert(fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 5 }), fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), async (texts, sizes) => {
    const { reader, response } = await open()
    const bytes = Buffer.from(texts.map((data, index) => `id: ${index}\ndata: ${data}\n\n`).join(''))
    for (let at = 0, n = 0; at < bytes.length; n++) {
      const size = sizes[n % sizes.length] ?? 1
      response.write(bytes.subarray(at, at += size))
    }
    response.end()
    const expected = texts.map((data, index) => ({ id: String(index), event: undefined, data: Buffer.from(data).toString() }))
    t.strictSame(await all(reader), expected)
  }), { numRuns: 60 })
})

t.test('a cut response is no end: what came whole is given, then it throws', async (t) => {
  const open = await server(t)
  const { reader, response } = await open()
  response.write('data: a\n\ndata: half')
  t.match(await reader.next(), { value: { data: 'a' } })
  response.destroy()
  await t.rejects(reader.next(), { code: 'AGT_ERR_NET_FAILED' })
})

t.test('heartbeats keep a silent stream open, and nothing at all ends it', async (t) => {
  const open = await server(t)
  const { reader, response } = await open({ idleMs: 1_000 })
  const closed = once(response, 'close')
  let count = 0
  const beats = setInterval(() => {
    // The whole is longer than the silence that would end it.
    if (++count < 45) return response.write(': beat\n\n')
    clearInterval(beats)
    response.write('data: a\n\n')
  }, 25)
  t.match(await reader.next(), { value: { data: 'a' } })
  await t.rejects(reader.next(), { code: 'AGT_ERR_NET_TIMEOUT' })
  await closed
})

t.test('an event that is too large ends the stream: in one line, in many, or at once', async (t) => {
  const open = await server(t)
  for (const write of [
    (response: ServerResponse) => { response.write(`data: ${'x'.repeat(2_000)}`) },
    (response: ServerResponse) => { response.write(`data: ${'x'.repeat(400)}\n`.repeat(3)) },
    (response: ServerResponse) => { response.write(`data: ${'x'.repeat(1_001)}\n\n`) }
  ]) {
    const { reader, response } = await open()
    const closed = once(response, 'close')
    write(response)
    await t.rejects(reader.next(), { code: 'AGT_ERR_NET_TOO_LARGE' })
    await closed
  }
})

t.test('takes nothing from the server that nobody asks for', async (t) => {
  const open = await server(t)
  const { reader, response } = await open({ maxEventBytes: 100_000 })
  // More than the buffers of two sockets hold.
  for (let count = 0; count < 400; count++) response.write(`data: ${'x'.repeat(60_000)}\n\n`)
  response.end()
  t.equal((await reader.next()).done, false)
  // Others are served meanwhile, again and again.
  for (let count = 0; count < 20; count++) {
    const other = await open()
    other.response.end('data: a\n\n')
    await all(other.reader)
  }
  t.ok(response.writableLength > 0, 'the rest waits at the server')
  t.equal((await all(reader)).length, 399)
})

t.test('closing, leaving and aborting give the connection back', async (t) => {
  const open = await server(t)
  const reason = new Error('enough')
  const controller = new AbortController()
  for (const leave of [
    async ({ reader }: Stream) => {
      const next = reader.next()
      reader.close(reason)
      t.equal(await next.catch((error: unknown) => error), reason)
    },
    async ({ reader, response }: Stream) => {
      response.write('data: a\n\ndata: b\n\n')
      t.match(await reader.next(), { value: { data: 'a' } })
      await reader.return()
      t.match(await reader.next(), { done: true })
    },
    async ({ reader }: Stream) => {
      const next = reader.next()
      controller.abort(reason)
      t.equal(await next.catch((error: unknown) => error), reason)
    }
  ]) {
    const stream = await open({ signal: controller.signal })
    const closed = once(stream.response, 'close')
    await leave(stream)
    await closed
  }
})
