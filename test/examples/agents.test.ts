import { mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { accumulate, createRuntimeContext, pendingOf, runAgent, textOf, type Agent, type AgentEvent, type AgentInput, type Decision } from 'fastify-agents/agent'
import { evaluate, findExpressions } from '../../examples/agents/arithmetic.ts'
import { calculator } from '../../examples/agents/calculator.ts'
import { createFileKeeper } from '../../examples/agents/file-keeper.ts'

async function ask (agent: Agent, text: string, resume?: Decision[]): Promise<AgentEvent[]> {
  const input: AgentInput = {
    messages: [{ id: 'm1', role: 'USER', content: [{ type: 'text', text }] }],
    history: 'replace',
    ...resume !== undefined && { resume }
  }
  const events: AgentEvent[] = []
  for await (const event of runAgent(agent, input, createRuntimeContext({ sessionId: 's1' }))) events.push(event)
  return events
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

t.test('the calculator computes all sums of a question in one batch', async (t) => {
  const events = await ask(calculator({ wordMs: 0 }), 'What is 6*7 and 1/0?')
  t.strictSame(results(events), [['calculate', 'success', '42'], ['calculate', 'error', '"1/0" has no finite value']])
  t.equal(textOf(accumulate(events)), '6*7 = 42, and 1/0: "1/0" has no finite value.')
})

t.test('the calculator says what it can do when there is nothing to compute', async (t) => {
  t.match(textOf(accumulate(await ask(calculator({ wordMs: 0 }), 'Hello'))), /I compute sums/)
})

t.test('the file keeper reads at once and waits for a human before it changes anything', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'file-keeper-'))
  await writeFile(join(folder, 'a.txt'), 'alpha')
  const agent = await createFileKeeper({ folder, wordMs: 0 })

  const reading = await ask(agent, 'list\nread a.txt\nread missing.txt')
  t.strictSame(results(reading), [['list_files', 'success', 'a.txt'], ['read_file', 'success', 'alpha'], ['read_file', 'error', 'Error: There is no file "missing.txt".']])

  const asking = await ask(agent, 'write b.txt: beta\ndelete a.txt')
  const pending = pendingOf(asking)
  t.strictSame(pending.map((item) => item.kind === 'confirm' ? [item.toolCall.name, item.toolCall.input] : item.kind),
    [['write_file', { name: 'b.txt', text: 'beta' }], ['delete_file', { name: 'a.txt' }]])
  t.strictSame(await readdir(folder), ['a.txt'], 'nothing has happened yet')

  const answered = await ask(agent, '', pending.flatMap((item, index): Decision[] => item.kind !== 'confirm'
    ? []
    : [{ kind: 'confirm', toolCallId: item.toolCall.id, approved: index === 0, toolCall: item.toolCall, ...index === 1 && { reason: 'keep it' } }]))
  t.strictSame(results(answered), [['write_file', 'success', 'Wrote 4 bytes to "b.txt".'], ['delete_file', 'denied', 'keep it']])
  t.strictSame(await readdir(folder), ['a.txt', 'b.txt'])
  t.equal(await readFile(join(folder, 'b.txt'), 'utf8'), 'beta')
})

t.test('the file keeper never leaves its folder', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'file-keeper-'))
  const outside = await mkdtemp(join(tmpdir(), 'file-keeper-outside-'))
  await writeFile(join(outside, 'secret.txt'), 'secret')
  await symlink(join(outside, 'secret.txt'), join(folder, 'link.txt'))
  const agent = await createFileKeeper({ folder, wordMs: 0 })
  for (const name of ['../secret.txt', join(outside, 'secret.txt'), 'link.txt', '..', '.hidden', 'a/b']) {
    const [[, state, text] = []] = results(await ask(agent, `read ${name}`))
    t.equal(state, 'error', name)
    t.notMatch(text, /secret$/, name)
  }
})
