// Serves the page: the files of `page/`, read once, under a policy that lets nothing in from elsewhere; and the agents it can choose from.
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { type FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from '@sinclair/typebox'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8'
}

const HEADERS = {
  // No inline script or style, nothing of another host, no frame around it. Trusted types: text can never become markup.
  'content-security-policy': "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache'
}

const Suggestion = Type.Object({ title: Type.String(), text: Type.String() })
const AgentList = Type.Object({
  agents: Type.Array(Type.Object({
    id: Type.String(),
    name: Type.String(),
    description: Type.Optional(Type.String()),
    suggestions: Type.Array(Suggestion, { description: 'What to try first.' })
  }))
})

const SUGGESTIONS: Readonly<Record<string, Static<typeof Suggestion>[]>> = {
  guide: [
    { title: 'Watch an answer stream, then reload', text: 'Give me the tour' },
    { title: 'Let the agent use a tool of this page', text: 'Paint the page' }
  ],
  files: [
    { title: 'Let it do what is harmless', text: 'list' },
    { title: 'Approve, edit or deny a dangerous call', text: 'write shopping.txt: milk' },
    { title: 'Answer two of them at once', text: 'write plan.txt: rest\ndelete shopping.txt' }
  ],
  calculator: [
    { title: 'See tools work in parallel', text: 'What is 6*7, 2^10 and 1/0?' }
  ]
}

/** Adds `GET /` for `index.html`, `GET /page/<name>` for each file beside it, and `GET /page/agents`. Needs `app.agents`. */
export const pageRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const folder = new URL('page/', import.meta.url)
  for (const name of await readdir(folder)) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    const content = await readFile(new URL(name, folder))
    app.get(name === 'index.html' ? '/' : `/page/${name}`, { schema: { hide: true } },
      (_request, reply) => reply.headers(HEADERS).type(type).send(content))
  }

  const { registry } = app.agents
  app.get('/page/agents', { schema: { summary: 'List the agents and what to try with them', tags: ['page'], response: { 200: AgentList } } }, () => ({
    agents: registry.ids.map((id) => ({ id, ...registry.describe(id) ?? { name: id }, suggestions: SUGGESTIONS[id] ?? [] }))
  }))
}
