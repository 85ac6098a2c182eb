import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  accumulate, createRuntimeContext, pendingId, pendingOf, resolveDecisions, runAgent, textOf,
  type Agent, type AgentEvent, type AgentInput, type Decision, type Msg, type Pending, type PermissionRule
} from 'fastify-agents/agent'
import { evaluate, findExpressions } from '../../examples/agents/arithmetic.ts'
import { createTeam } from '../../examples/agents/team.ts'
import { modelFromEnvironment } from '../../examples/model.ts'
import { implementations } from '../helpers/example-model.ts'

interface Asked {
  readonly resume?: Decision[]
  readonly tools?: AgentInput['tools']
  readonly denyRules?: readonly PermissionRule[]
}

async function ask (agent: Agent, text: string, { denyRules, resume, tools }: Asked = {}, more: readonly Msg[] = []): Promise<AgentEvent[]> {
  const input: AgentInput = {
    messages: [{ id: 'm1', role: 'USER', content: [{ type: 'text', text }] }, ...more],
    history: 'replace',
    ...resume !== undefined && { resume },
    ...tools !== undefined && { tools }
  }
  const events: AgentEvent[] = []
  for await (const event of runAgent(agent, input, createRuntimeContext({ sessionId: 's1', denyRules }))) events.push(event)
  return events
}

/** Decisions in the order of what is pending. */
function decide (pending: readonly Pending[], answers: readonly object[]): Decision[] {
  const resolved = resolveDecisions(pending, pending.map((item, index) => ({ kind: 'confirm', toolCallId: pendingId(item), ...answers[index] })))
  if (resolved.kind === 'rejected') throw new Error(JSON.stringify(resolved.problems))
  return [...resolved.decisions]
}

function results (events: readonly AgentEvent[]): [name: string, state: string, text: string][] {
  return accumulate(events).content.flatMap((block) => block.type === 'tool_result' ? [[block.name ?? '', block.state, textOf(block.output)] as [string, string, string]] : [])
}

t.test('finds the sums in a sentence and computes them', async (t) => {
  t.strictSame(findExpressions('What is 6*7 and 2^10, and (1+2)*3?'), ['6*7', '2^10', '(1+2)*3'])
  t.strictSame(findExpressions('no sums in 2026 here'), [])
  for (const [sum, value] of [['6*7', 42], ['2^10', 1024], ['2^3^2', 512], ['-2^2', -4], ['1+2*3', 7], ['(1+2)*3', 9], ['7%4', 3], ['8/4/2', 1], ['2*-3', -6]] as const) {
    t.equal(evaluate(sum), value, sum)
  }
  for (const wrong of ['', '1+', '(1', '1)', '1/0', 'x', '1 2']) t.throws(() => evaluate(wrong), Error, `"${wrong}"`)
})

for (const { name, model } of implementations) {
  t.test(name, async (t) => {
    const folderFor = async (t: Test): Promise<string> => {
      const folder = await mkdtemp(join(tmpdir(), 'file-keeper-'))
      t.teardown(() => rm(folder, { recursive: true }))
      return folder
    }
    const agentOf = async (t: Test, agent: 'guide' | 'calculator' | 'files', folder?: string): Promise<Agent> => {
      const team = await createTeam({ folder: folder ?? await folderFor(t), wordMs: 0, model: model() })
      const found = team[agent]
      if (found === undefined) throw new Error(`There is no ${agent}`)
      return found
    }

    t.test('the calculator computes all sums of a question in one batch', async (t) => {
      const events = await ask(await agentOf(t, 'calculator'), 'What is 6*7 and 1/0?')
      t.strictSame(results(events), [['calculate', 'success', '42'], ['calculate', 'error', 'Error: "1/0" has no finite value']])
      t.equal(textOf(accumulate(events)), '6*7 = 42, and 1/0: "1/0" has no finite value.')
    })

    t.test('the calculator says what it can do when there is nothing to compute', async (t) => {
      t.match(textOf(accumulate(await ask(await agentOf(t, 'calculator'), 'Hello'))), /I compute sums/)
    })

    t.test('the calculator keeps to deny rules', async (t) => {
      const events = await ask(await agentOf(t, 'calculator'), 'What is 6*7?', { denyRules: [{ tool_name: 'calculate', behavior: 'deny' }] })
      t.strictSame(results(events), [['calculate', 'denied', 'Permission denied by rules']])
    })

    t.test('the file keeper reads at once and waits for a human before it changes anything', async (t) => {
      const folder = await folderFor(t)
      await writeFile(join(folder, 'a.txt'), 'alpha')
      const agent = await agentOf(t, 'files', folder)

      const reading = await ask(agent, 'list\nread a.txt\nread missing.txt')
      t.strictSame(results(reading), [['list_files', 'success', 'a.txt'], ['read_file', 'success', 'alpha'], ['read_file', 'error', 'Error: There is no file "missing.txt".']])

      const asking = await ask(agent, 'write b.txt: beta\ndelete a.txt')
      const pending = pendingOf(asking)
      t.strictSame(pending.map((item) => item.kind === 'confirm' ? [item.toolCall.name, item.toolCall.input] : item.kind),
        [['write_file', { name: 'b.txt', text: 'beta' }], ['delete_file', { name: 'a.txt' }]])
      t.strictSame(await readdir(folder), ['a.txt'], 'nothing has happened yet')

      const answered = await ask(agent, '', { resume: decide(pending, [{ approved: true }, { approved: false, reason: 'keep it' }]) })
      t.strictSame(results(answered), [['write_file', 'success', 'Wrote 4 bytes to "b.txt".'], ['delete_file', 'denied', 'keep it']])
      t.equal(textOf(accumulate(answered)), 'write_file: Wrote 4 bytes to "b.txt".\ndelete_file: not done (keep it)')
      t.strictSame(await readdir(folder), ['a.txt', 'b.txt'])
      t.equal(await readFile(join(folder, 'b.txt'), 'utf8'), 'beta')
    })

    t.test('the file keeper works with edited arguments, and another instance of it goes on from the decision', async (t) => {
      const folder = await folderFor(t)
      const pending = pendingOf(await ask(await agentOf(t, 'files', folder), 'write b.txt: beta'))
      const resume = decide(pending, [{ approved: true, editedArgs: { name: 'c.txt', text: 'gamma' } }])
      const answered = await ask(await agentOf(t, 'files', folder), '', { resume })
      t.strictSame(results(answered), [['write_file', 'success', 'Wrote 5 bytes to "c.txt".']])
      t.strictSame(await readdir(folder), ['c.txt'])
    })

    t.test('the file keeper never leaves its folder', async (t) => {
      const folder = await folderFor(t)
      const outside = await folderFor(t)
      await writeFile(join(outside, 'secret.txt'), 'secret')
      await symlink(join(outside, 'secret.txt'), join(folder, 'link.txt'))
      const agent = await agentOf(t, 'files', folder)
      for (const name of ['../secret.txt', join(outside, 'secret.txt'), 'link.txt', '..', '.hidden', 'a/b']) {
        const [[, state, text] = []] = results(await ask(agent, `read ${name}`))
        t.equal(state, 'error', name)
        t.notMatch(text, /secret$/, name)
      }
    })

    t.test('the guide calls the tool of the page and waits for what came of it', async (t) => {
      const tools: AgentInput['tools'] = { mode: 'merge', definitions: [{ name: 'pick_colour', parameters: { type: 'object', properties: { question: { type: 'string' } } } }] }
      const agent = await agentOf(t, 'guide')
      const asking = await ask(agent, 'Paint the page', { tools })
      const [pending] = pendingOf(asking)
      if (pending?.kind !== 'external') throw new Error('The guide waits for nothing.')
      t.strictSame([pending.toolCall.name, pending.toolCall.input], ['pick_colour', { question: 'Which colour shall this page have?' }])
      const painted = await ask(agent, 'Paint the page', { tools }, [
        { id: 'm2', role: 'ASSISTANT', content: [pending.toolCall] },
        { id: 'm3', role: 'TOOL', content: [{ type: 'tool_result', id: pending.toolCall.id, name: 'pick_colour', output: [{ type: 'text', text: 'teal' }], state: 'success' }] }
      ])
      t.equal(textOf(accumulate(painted)), 'The page is teal now.')
    })
  })
}

t.test('the environment names the model that runs the agents, or says what is missing', async (t) => {
  t.equal(modelFromEnvironment({}), undefined)
  t.match(modelFromEnvironment({ OPENAI_API_KEY: 'k' }), { modelId: 'gpt-5-mini', provider: 'openai.chat' })
  t.match(modelFromEnvironment({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', MODEL: 'small' }), { modelId: 'small' })
  t.throws(() => modelFromEnvironment({ MODEL: 'small' }), /neither OPENAI_API_KEY nor OPENAI_BASE_URL/)
  t.throws(() => modelFromEnvironment({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' }), /but not MODEL/)
})
