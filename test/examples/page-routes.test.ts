import { mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildServer } from '../../examples/app.ts'

const folder = new URL('../../examples/page/', import.meta.url)
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

async function build (t: Test) {
  const app = await buildServer({ folder: await mkdtemp(join(tmpdir(), 'page-routes-')), logLevel: 'silent' })
  t.teardown(() => app.close())
  return app
}

t.test('the page and all its files come as they are, under a policy that lets nothing else in', async (t) => {
  const app = await build(t)
  for (const [path, name, type] of [
    ['/', 'index.html', 'text/html; charset=utf-8'],
    ...(await readdir(folder)).filter((name) => name !== 'index.html').map((name) =>
      [`/page/${name}`, name, `text/${name.endsWith('.css') ? 'css' : 'javascript'}; charset=utf-8`])
  ] as [string, string, string][]) {
    const { statusCode, headers, body } = await app.inject(path)
    t.equal(statusCode, 200, path)
    t.equal(headers['content-type'], type)
    t.equal(headers['content-security-policy'], POLICY)
    t.equal(headers['x-content-type-options'], 'nosniff')
    t.equal(body, await readFile(new URL(name, folder), 'utf8'))
  }
  t.equal((await app.inject('/page/../app.ts')).statusCode, 404)
  t.equal((await app.inject('/page/index.html')).statusCode, 404)
})

t.test('no file of the page is a build\'s work or names another host', async (t) => {
  for (const name of await readdir(folder)) {
    const text = await readFile(new URL(name, folder), 'utf8')
    t.ok(text.split('\n').length < 400, `${name} can be read in one go`)
    t.strictSame([...text.matchAll(/https?:\/\/[^\s'"]+/g)].map(([url]) => url).filter((url) => url !== 'http://www.w3.org/2000/svg'), [], name)
    t.notMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/, name)
    if (name.endsWith('.html')) t.notMatch(text, /<script(?![^>]* src=)|<style|\son\w+=|\sstyle=/, `${name} has no inline script or style`)
  }
})

t.test('the agents are listed with what to try', async (t) => {
  const app = await build(t)
  app.agents.registry.register('plain', () => undefined)
  const { agents } = (await app.inject('/page/agents')).json() as { agents: { id: string, name: string, description?: string, suggestions: { title: string, text: string }[] }[] }
  t.strictSame(agents.map(({ id, name }) => [id, name]), [['guide', 'guide'], ['calculator', 'calculator'], ['files', 'files'], ['plain', 'plain']])
  t.strictSame(agents.map(({ suggestions }) => suggestions.length), [2, 1, 3, 0])
})
