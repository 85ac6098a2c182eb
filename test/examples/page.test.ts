// The page as somebody uses it who has just started the server.
import axe from 'axe-core'
import { type Page } from 'playwright-core'
import t from 'tap'
import { AgentError } from '../../lib/agent/index.ts'
import { browserTests } from '../helpers/browser.ts'
import { ask, cards, said, serveExample, settled, transcript } from '../helpers/example-page.ts'

const test = browserTests(t)
const LONG = 'x'.repeat(300)

/** Rules of WCAG 2.2 A and AA that the page breaks as it stands: the rule and where. */
async function violations (page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const found = await page.evaluate('axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })') as axe.AxeResults
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

test('a click on a suggestion asks its agent, which answers with thoughts, tools and text', async (t, { open }) => {
  const { url } = await serveExample(t)
  const page = await open(url)
  await page.getByRole('button', { name: 'See tools work in parallel' }).click()
  await said(page, '2^10 = 1024')
  await settled(page)
  t.strictSame(await transcript(page), ['user: What is 6*7, 2^10 and 1/0?', 'assistant: 6*7 = 42, and 2^10 = 1024, and 1/0: "1/0" has no finite value.'])
  t.strictSame(await cards(page), [
    ['calculate', 'done', '{ "expression": "6*7" }', '42'],
    ['calculate', 'done', '{ "expression": "2^10" }', '1024'],
    ['calculate', 'failed', '{ "expression": "1/0" }', 'Error: "1/0" has no finite value']
  ])
  t.equal(await page.locator('#agent').inputValue(), 'calculator')
  t.equal(await page.locator('#connection').textContent(), 'Ready')
  t.equal(await page.locator('#tokens').textContent(), '12 tokens in, 17 out')

  const thoughts = page.locator('.reasoning')
  t.notOk(await thoughts.locator('.text').isVisible(), 'thoughts are folded')
  await thoughts.locator('summary').click()
  t.equal(await thoughts.locator('.text').textContent(), 'There are 3 sums in this question.')
})

test('every agent of the server can be chosen', async (t, { open }) => {
  const { url } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  t.strictSame(await page.locator('#agent option').allTextContents(), ['guide', 'calculator', 'files', 'steered'])
})

test('an answer shows as it is written, and what looks like markup in it stays text', async (t, { open }) => {
  const { url, agent } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  const question = '<script>alert(1)</script>'
  await ask(page, 'steered', question)
  const run = await agent.next()
  run.push({ type: 'THINKING_BLOCK_DELTA', replyId: 'reply', blockId: 'thought', delta: 'Hm.' })
  await page.locator('.reasoning summary', { hasText: 'Thinking…' }).waitFor()
  run.say('One <b>')
  await said(page, 'One <b>')
  t.equal(await page.locator('#log').getAttribute('aria-busy'), 'true')
  t.equal(await page.locator('#connection').textContent(), 'Answering')
  t.equal(await page.locator('.reasoning summary').textContent(), 'Thoughts')
  run.push({ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: '<i>look</i>' }, { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '{"where":' })
  await page.locator('.tool .arguments pre', { hasText: '{"where":' }).waitFor()
  t.strictSame(await cards(page), [['<i>look</i>', 'running', '{"where":', '']])
  run.push(
    { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '"<u>"}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
    { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: 'c1', delta: '<img src=x onerror=alert(1)>' },
    { type: 'TOOL_RESULT_END', toolCallId: 'c1', state: 'success' }
  )
  run.say('two</b>', 'second')
  run.end()
  await settled(page)
  t.strictSame(await transcript(page), [`user: ${question}`, 'assistant: One <b>', 'assistant: two</b>'])
  t.strictSame(await cards(page), [['<i>look</i>', 'done', '{ "where": "<u>" }', '<img src=x onerror=alert(1)>']])
  t.equal(await page.locator('#log :is(b, i, u, img, script)').count(), 0)
})

test('an agent calls a tool of the page; its colour stays after a reload', async (t, { open }) => {
  const { url } = await serveExample(t)
  const page = await open(url)
  await page.getByRole('button', { name: 'Let the agent use a tool of this page' }).click()
  await page.locator('.swatch').first().waitFor()
  await settled(page)
  t.strictSame(await cards(page), [['pick_colour', 'waits for you', '{ "question": "Which colour shall this page have?" }', '']])

  await page.reload()
  await page.getByRole('button', { name: 'violet' }).click()
  await said(page, 'The page is violet now.')
  await settled(page)
  t.strictSame(await cards(page), [['pick_colour', 'done', '{ "question": "Which colour shall this page have?" }', 'violet']])
  t.equal(await page.locator('html').getAttribute('data-colour'), 'violet')
  await page.reload()
  await said(page, 'The page is violet now.')
  t.equal(await page.locator('html').getAttribute('data-colour'), 'violet')
})

test('who goes on without answering a call of the page is understood', async (t, { open }) => {
  const { url } = await serveExample(t)
  const page = await open(url)
  await page.getByRole('button', { name: 'Let the agent use a tool of this page' }).click()
  await page.locator('.swatch').first().waitFor()
  await settled(page)
  await ask(page, 'calculator', '1+1')
  await said(page, '1+1 = 2.')
  t.strictSame((await cards(page)).map(([name, state]) => [name, state]), [['pick_colour', 'failed'], ['calculate', 'done']])
  t.equal(await page.locator('.swatch').count(), 0)
})

test('what goes wrong is said in words, and the question can be asked again', async (t, { open }) => {
  const { app, url, agent } = await serveExample(t)
  const page = await open(url, { expects: /status of 404/ })
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'steered', 'Why?')
  const failing = await agent.next()
  failing.say('Because ')
  failing.fail(new AgentError({ code: 'MODEL_GONE', message: 'The model has left.', expose: true }))
  await settled(page)
  t.strictSame(await transcript(page), ['user: Why?', 'assistant: Because ', 'note: The model has left.'])

  await page.getByRole('button', { name: 'Ask again' }).click()
  const working = await agent.next()
  t.strictSame(working.input.messages.map(({ role }) => role), ['USER'])
  working.say('Because.')
  working.end()
  await said(page, 'Because.')
  await settled(page)
  t.strictSame(await transcript(page), ['user: Why?', 'assistant: Because.'])

  app.agents.registry.unregister('steered')
  await ask(page, 'steered', 'And now?')
  await page.locator('.note', { hasText: 'No agent is registered as "steered".' }).waitFor()
})

test('a new chat forgets the old one and stops what it was doing', async (t, { open }) => {
  const { url, agent } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'steered', 'Talk')
  const run = await agent.next()
  run.say('La la')
  await said(page, 'La la')
  await page.getByRole('button', { name: 'New chat' }).click()
  await run.over
  await page.locator('#welcome').waitFor()
  t.strictSame(await transcript(page), [])
  await ask(page, 'steered', 'Again')
  const second = await agent.next()
  t.strictSame(second.input.messages.length, 1)
  second.end()
  await settled(page)
})

test('on a phone nothing is wider than the screen', async (t, { open }) => {
  const { url, agent } = await serveExample(t)
  const page = await open(url, { viewport: { width: 360, height: 640 }, isMobile: true, hasTouch: true })
  const widths = () => page.evaluate('[document.documentElement.scrollWidth, scroller.scrollWidth, document.querySelector("dialog").scrollWidth <= 360]')
  await page.locator('#agent:enabled').waitFor()
  t.strictSame(await widths(), [360, 360, true])
  await ask(page, 'steered', LONG)
  const run = await agent.next()
  run.push({ type: 'THINKING_BLOCK_DELTA', delta: LONG })
  run.say(LONG)
  run.push(
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: LONG },
    { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: JSON.stringify({ [LONG]: LONG }) },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
    { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: 'c1', delta: LONG },
    { type: 'TOOL_RESULT_END', toolCallId: 'c1', state: 'success' }
  )
  run.fail(new AgentError({ code: 'LONG', message: LONG, expose: true }))
  await settled(page)
  await page.locator('.reasoning summary').click()
  t.strictSame(await widths(), [360, 360, true])

  await page.getByRole('button', { name: 'New chat' }).click()
  await ask(page, 'files', `write ${'y'.repeat(90)}: ${LONG}\ndelete a`)
  await page.locator('dialog[open]').waitFor()
  t.strictSame(await widths(), [360, 360, true])
})

for (const colorScheme of ['light', 'dark'] as const) {
  test(`the page keeps the rules of WCAG at level AA, ${colorScheme}, in each of its colours`, async (t, { open }) => {
    const { url, agent } = await serveExample(t)
    const page = await open(url, { colorScheme, reducedMotion: 'reduce' })
    await page.locator('#agent:enabled').waitFor()
    t.strictSame(await violations(page), [], 'welcome')
    const background = await page.evaluate('getComputedStyle(document.body).backgroundColor')
    t.equal(background, colorScheme === 'dark' ? 'rgb(20, 21, 19)' : 'rgb(247, 247, 245)')

    await page.getByRole('button', { name: 'See tools work in parallel' }).click()
    await said(page, '2^10 = 1024')
    await settled(page)
    await ask(page, 'steered', 'Fail')
    const run = await agent.next()
    run.push({ type: 'THINKING_BLOCK_DELTA', delta: 'Hm.' })
    run.fail(new AgentError({ code: 'NO', message: 'No.', expose: true }))
    await settled(page)
    await page.locator('.reasoning summary').last().click()
    t.strictSame(await violations(page), [], 'conversation')

    await ask(page, 'guide', 'Paint the page')
    await page.locator('.swatch').first().waitFor()
    await settled(page)
    t.strictSame(await violations(page), [], 'choices')
    for (const colour of ['blue', 'violet', 'rose', 'orange', 'green']) {
      await page.evaluate(`document.documentElement.dataset.colour = '${colour}'`)
      t.strictSame(await violations(page), [], colour)
    }

    await ask(page, 'files', 'write a.txt: alpha\ndelete a.txt')
    await page.locator('dialog[open]').waitFor()
    await page.getByRole('radio', { name: 'Deny' }).first().check()
    await page.getByRole('radio', { name: 'Approve' }).last().check()
    t.strictSame(await violations(page), [], 'approvals')
  })
}
