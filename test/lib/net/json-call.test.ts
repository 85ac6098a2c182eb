import { once } from 'node:events'
import { Agent } from 'node:http'
import t from 'tap'
import { callJson, isTransient, type JsonCall } from '../../../lib/net/index.ts'
import { listen } from '../../helpers/http-server.ts'

const call = (url: string, more: Partial<JsonCall> = {}): ReturnType<typeof callJson> =>
  callJson({ method: 'GET', url: new URL(url), timeoutMs: 5_000, maxBytes: 1_000, agent: new Agent(), ...more })

t.test('sends JSON and reads JSON, whatever the status says', async (t) => {
  const seen: unknown[] = []
  const { url } = await listen(t, async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    seen.push([request.method, request.url, request.headers['content-type'], request.headers['content-length'], request.headers.accept, request.headers['x-key'], body])
    response.writeHead(request.method === 'POST' ? 409 : 200, { 'content-type': 'application/json', 'retry-after': '3' })
    response.end('{"größe":1}')
  })
  t.match(await call(`${url}/a?b=c`, { method: 'POST', body: { text: 'ü' }, headers: { 'x-key': 'k' } }), { status: 409, headers: { 'retry-after': '3' }, body: { größe: 1 } })
  t.match(await call(`${url}/a`), { status: 200, body: { größe: 1 } })
  t.strictSame(seen, [
    ['POST', '/a?b=c', 'application/json', '13', 'application/json', 'k', '{"text":"ü"}'],
    ['GET', '/a', undefined, undefined, 'application/json', undefined, '']
  ])
})

t.test('an empty body is none; a page in place of JSON is a failure beside a good status, and nothing beside a bad one', async (t) => {
  const { url } = await listen(t, (request, response) => {
    response.writeHead(Number(request.url?.slice(1)))
    response.end(request.method === 'DELETE' ? '' : '<html>')
  })
  t.match(await call(`${url}/200`, { method: 'DELETE' }), { status: 200, body: undefined })
  t.match(await call(`${url}/502`), { status: 502, body: undefined })
  await t.rejects(call(`${url}/200`), { code: 'AGT_ERR_NET_NOT_JSON' })
})

t.test('a redirect is an answer, and its target is not asked', async (t) => {
  const paths: unknown[] = []
  const { url } = await listen(t, (request, response) => {
    paths.push(request.url)
    response.writeHead(302, { location: '/elsewhere' }).end()
  })
  t.match(await call(`${url}/here`), { status: 302, headers: { location: '/elsewhere' } })
  t.strictSame(paths, ['/here'])
})

t.test('gives up an answer that is too large before it is read whole', async (t) => {
  const closed: Promise<unknown>[] = []
  const { url, sockets } = await listen(t, (_, response) => {
    closed.push(once(response, 'close'))
    response.write(`"${'x'.repeat(1_000)}`)
  })
  await t.rejects(call(url), { code: 'AGT_ERR_NET_TOO_LARGE' })
  await closed[0]
  t.equal(sockets.size, 0)
})

t.test('the deadline covers the head and the body', async (t) => {
  const closed: Promise<unknown>[] = []
  const { url } = await listen(t, (request, response) => {
    closed.push(once(response, 'close'))
    if (request.url === '/body') response.write('{"a":')
  })
  for (const path of ['/head', '/body']) {
    const error: unknown = await call(url + path, { timeoutMs: 40 }).catch((thrown: unknown) => thrown)
    t.match(error, { code: 'AGT_ERR_NET_TIMEOUT' })
    t.ok(isTransient(error))
  }
  await Promise.all(closed)
})

t.test('a refused and a cut connection are failures of the network, which may be gone the next time', async (t) => {
  const { url, server } = await listen(t, (request, response) => {
    if (request.url === '/cut') {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{')
    }
    setImmediate(() => { request.socket.destroy() })
  })
  for (const path of ['/reset', '/cut']) {
    const error: unknown = await call(url + path).catch((thrown: unknown) => thrown)
    t.match(error, { code: 'AGT_ERR_NET_FAILED' }, path)
    t.ok(isTransient(error))
  }
  server.close()
  server.closeAllConnections()
  await t.rejects(call(url), { code: 'AGT_ERR_NET_FAILED', cause: { code: 'ECONNREFUSED' } })
})

t.test('a server that changes the protocol unasked has given no answer', async (t) => {
  const { url, server } = await listen(t, () => {})
  server.on('request', (request) => { request.socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n') })
  await t.rejects(call(url), { code: 'AGT_ERR_NET_FAILED' })
})

t.test('an abort ends the call at any time with its reason, gives the socket back and leaves no listener', async (t) => {
  const arrived: (() => void)[] = []
  const closed: Promise<unknown>[] = []
  const { url } = await listen(t, (request, response) => {
    closed.push(once(response, 'close'))
    if (request.url === '/body') response.write('{"a":')
    arrived.shift()?.()
  })
  const reason = new Error('enough')
  for (const path of ['/head', '/body']) {
    const controller = new AbortController()
    const at = new Promise<void>((resolve) => { arrived.push(resolve) })
    const calling = call(url + path, { signal: controller.signal })
    await at
    controller.abort(reason)
    t.equal(await calling.catch((error: unknown) => error), reason)
  }
  await Promise.all(closed)
  t.equal(await call(url, { signal: AbortSignal.abort(reason) }).catch((error: unknown) => error), reason, 'also before it')
  const strange = new AbortController()
  strange.abort('enough')
  await t.rejects(call(url, { signal: strange.signal }))
})
