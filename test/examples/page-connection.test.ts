// What happens to an answer when its page, its connection or its server goes away.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { browserTests } from '../helpers/browser.ts'
import { ask, said, serveExample, settled, transcript } from '../helpers/example-page.ts'
import { type SteeredRun } from '../helpers/steered-agent.ts'

const test = browserTests(t)
/** What a browser writes by itself when a server is not there. */
const NETWORK = /net::ERR_/
const root = fileURLToPath(new URL('../..', import.meta.url))

const WORDS = Array.from({ length: 1_500 }, (_, index) => `word${index} `)

/** Says a part of the words, one event each, letting others do something now and then. */
async function speak (run: SteeredRun, from: number, to: number): Promise<void> {
  for (let index = from; index < to; index++) {
    run.say(WORDS[index] ?? '')
    if (index % 5 === 0) await turn()
  }
}

test('a page that is reloaded in the middle of an answer, again and again, misses nothing and repeats nothing', async (t, { open }) => {
  const { url, agent } = await serveExample(t)
  const undisturbed = await open(url)
  await undisturbed.locator('#agent:enabled').waitFor()
  await ask(undisturbed, 'steered', 'Talk')
  const model = await agent.next()
  await speak(model, 0, WORDS.length)
  model.end()
  await settled(undisturbed)
  const expected = await transcript(undisturbed)
  t.strictSame(expected, ['user: Talk', `assistant: ${WORDS.join('')}`])

  const page = await open(url)
  const cursors: (string | undefined)[] = []
  page.on('request', (request) => { if (request.url().includes('/agui/connect')) cursors.push(request.headers()['last-event-id']) })
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'steered', 'Talk')
  const run = await agent.next()
  await speak(run, 0, 300)
  await said(page, 'word200 ')
  await Promise.all([speak(run, 300, 600), page.reload()])
  await said(page, 'word500 ')
  await Promise.all([page.reload(), speak(run, 600, 900)])
  await said(page, 'word800 ')
  await page.reload()
  await speak(run, 900, WORDS.length)
  run.end()
  await said(page, `word${WORDS.length - 1} `)
  await settled(page)
  t.strictSame(await transcript(page), expected)
  t.equal(cursors.length, 3)
  for (const cursor of cursors) t.match(cursor, /^[\w-]+\.[1-9]\d*$/, 'rejoins by the last event it has seen')
  t.equal(agent.runs.length, 2, 'nothing was run again')
})

test('a page that is reloaded after the end shows what it showed', async (t, { open }) => {
  const { url } = await serveExample(t)
  const page = await open(url)
  await page.getByRole('button', { name: 'See tools work in parallel' }).click()
  await said(page, '2^10 = 1024')
  await settled(page)
  const before = await page.locator('#log').innerText()
  await page.reload()
  await said(page, '2^10 = 1024')
  t.equal(await page.locator('#log').innerText(), before)
  t.equal(await page.locator('#tokens').textContent(), '12 tokens in, 17 out')
})

test('a page reloaded after its answer was completed behind its back reads the rest', async (t, { open }) => {
  const { url, agent } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'steered', 'Talk')
  const run = await agent.next()
  run.say('The beginning ')
  await said(page, 'The beginning')
  await page.goto('about:blank')
  run.say('and the end.')
  run.end()
  await run.over
  await page.goBack()
  await said(page, 'The beginning and the end.')
  await settled(page)
  t.strictSame(await transcript(page), ['user: Talk', 'assistant: The beginning and the end.'])
})

/** A way to the server that can be cut. */
async function tunnel (t: Test, port: number): Promise<{ readonly url: string, cut (): void }> {
  const sockets = new Set<Socket>()
  const server = createServer((inner) => {
    const outer = connect(port, '127.0.0.1')
    for (const socket of [inner, outer]) {
      sockets.add(socket)
      socket.on('error', () => {}) // cut on purpose
      socket.on('close', () => {
        sockets.delete(socket)
        inner.destroy()
        outer.destroy()
      })
    }
    inner.pipe(outer).pipe(inner)
  })
  const cut = (): void => { for (const socket of sockets) socket.destroy() }
  t.teardown(() => {
    cut()
    server.close()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, cut } // listens on TCP
}

test('a connection that drops in the middle of an answer is taken up where it was', async (t, { open }) => {
  const { port, agent } = await serveExample(t)
  const { url, cut } = await tunnel(t, port)
  const page = await open(url, { expects: NETWORK })
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'steered', 'Talk')
  const run = await agent.next()
  for (const [from, to] of [[0, 500], [500, 1_000]] as const) {
    await speak(run, from, to)
    await said(page, `word${to - 1} `)
    cut()
    await page.locator('#connection', { hasText: 'Connection lost. Trying again' }).waitFor()
  }
  await speak(run, 1_000, WORDS.length)
  run.end()
  await said(page, `word${WORDS.length - 1} `)
  await settled(page)
  t.strictSame(await transcript(page), ['user: Talk', `assistant: ${WORDS.join('')}`])
  t.equal(agent.runs.length, 1)
})

test('Stop ends the run itself, and what had been said stays', async (t, { open }) => {
  const { url, agent } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'steered', 'Talk')
  const run = await agent.next()
  run.say('Once upon')
  await said(page, 'Once upon')
  await page.getByRole('button', { name: 'Stop' }).click()
  await run.over
  t.ok(run.context.signal.aborted)
  await settled(page)
  t.strictSame(await transcript(page), ['user: Talk', 'assistant: Once upon', 'note: Stopped.'])
  t.equal(await page.evaluate('document.activeElement.id'), 'text')

  await ask(page, 'steered', 'Go on')
  const second = await agent.next()
  t.strictSame(second.input.messages.map(({ role }) => role), ['USER', 'ASSISTANT', 'USER'])
  second.say(' a time.')
  second.end()
  await said(page, ' a time.')
  await settled(page)
})

/** The example in a process of its own, on a port that is known before. */
async function startChild (port: number, folder: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--import', 'tsx', '--conditions=fastify-agents:source', 'examples/server.ts'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], PORT: String(port), HOST: '127.0.0.1', LOG_LEVEL: 'silent', FILES_DIR: folder }
  })
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  lines.close()
  return child
}

async function kill (child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // listens on TCP
  server.close()
  await once(server, 'close')
  return port
}

test('a server that is killed and comes back is waited for, and what it has lost is said', async (t, { open }) => {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'example-page-'))
  let child = await startChild(port, folder)
  t.teardown(() => { child.kill('SIGKILL') })
  const page = await open(`http://127.0.0.1:${port}/`, { expects: NETWORK })
  await page.getByRole('button', { name: 'Watch an answer stream, then reload' }).click()
  await said(page, 'You are watching')
  await kill(child)
  await page.locator('#connection', { hasText: 'Connection lost. Trying again' }).waitFor()

  child = await startChild(port, folder)
  await page.locator('.note', { hasText: 'The server was restarted and does not know this run any more.' }).waitFor()
  t.match(await transcript(page), ['user: Give me the tour', /^assistant: You are watching/, /^note: /])
  await page.getByRole('button', { name: 'Ask again' }).click()
  await page.locator('.note').waitFor({ state: 'detached' })
  await said(page, 'You are watching')
  t.match(await transcript(page), ['user: Give me the tour', /^assistant: You are watching/])
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.locator('.note', { hasText: 'Stopped.' }).waitFor()

  // What is asked while nobody is there is asked as soon as somebody is.
  await kill(child)
  await ask(page, 'calculator', 'What is 2+3?')
  await page.locator('#connection', { hasText: 'Connection lost. Trying again' }).waitFor()
  child = await startChild(port, folder)
  await said(page, '2+3 = 5.')
  await settled(page)
  t.equal(await page.locator('#connection').textContent(), 'Ready')
})

test('who does not want to wait for a server can stop waiting', async (t, { open }) => {
  const { app, url, agent } = await serveExample(t)
  const page = await open(url, { expects: NETWORK })
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'steered', 'Talk')
  const run = await agent.next()
  run.say('Well')
  await said(page, 'Well')
  await app.close()
  // It has said goodbye: the run was interrupted.
  await page.locator('.note', { hasText: 'The run was interrupted because the server shuts down.' }).waitFor()
  await page.getByRole('button', { name: 'Ask again' }).click()
  await page.locator('#connection', { hasText: 'Connection lost. Trying again' }).waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.locator('.note', { hasText: 'The server cannot be reached. This page no longer waits for it.' }).waitFor()
  t.equal(await page.locator('#connection').textContent(), 'Ready')
})
