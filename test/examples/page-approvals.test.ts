// Dangerous calls wait for the page's user, who approves, edits or denies them.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Page } from 'playwright-core'
import t from 'tap'
import { buildServer } from '../../examples/app.ts'
import { AgentError } from '../../lib/agent/index.ts'
import { browserTests } from '../helpers/browser.ts'
import { ask, cards, said, serveExample, settled, transcript } from '../helpers/example-page.ts'

const test = browserTests(t)

/** The open dialogue, with one question. */
async function asked (page: Page, count = 1): Promise<void> {
  await page.locator('dialog[open] .approval').nth(count - 1).waitFor()
}

function button (page: Page, name: string) {
  return page.locator('dialog').getByRole('button', { name, exact: true })
}

/** Moves the focus by a key until it is where it is wanted; a user would see it move. */
async function moveTo (page: Page, key: string, isThere: string): Promise<void> {
  for (let count = 0; count < 30; count++) {
    if (await page.evaluate(`document.activeElement.matches(${JSON.stringify(isThere)})`) === true) return
    await page.keyboard.press(key)
  }
  throw new Error(`"${isThere}" is not reached by ${key}`)
}

test('an approved call runs, and its result stands in its card', async (t, { open }) => {
  const { url, folder } = await serveExample(t)
  const page = await open(url)
  await page.getByRole('button', { name: 'Approve, edit or deny a dangerous call' }).click()
  await asked(page)
  t.equal(await page.getByRole('dialog').getAttribute('aria-labelledby'), 'approvals-title')
  t.equal(await page.locator('#approvals-title').textContent(), 'The agent asks for your approval')
  t.strictSame(await cards(page), [['write_file', 'needs your approval', '{ "name": "shopping.txt", "text": "milk" }', '']])
  t.strictSame(await readdir(folder), [], 'nothing has happened yet')
  await button(page, 'Approve').click()
  await said(page, 'write_file: Wrote 4 bytes to "shopping.txt".')
  await settled(page)
  t.strictSame(await cards(page), [['write_file', 'done', '{ "name": "shopping.txt", "text": "milk" }', 'Wrote 4 bytes to "shopping.txt".']])
  t.equal(await readFile(join(folder, 'shopping.txt'), 'utf8'), 'milk')
  t.equal(await page.evaluate('document.activeElement.id'), 'text')
  t.notOk(await page.locator('#questions').isVisible())

  await ask(page, 'files', 'read shopping.txt')
  await said(page, 'read_file: milk')
})

test('a denied call does not run, and its agent is told why', async (t, { open }) => {
  const { url, folder } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'files', 'write a.txt: alpha')
  await asked(page)
  await page.getByLabel('Reason for the agent, if you deny').fill('not today')
  await button(page, 'Deny').click()
  await said(page, 'write_file: not done (not today)')
  await settled(page)
  t.strictSame(await cards(page), [['write_file', 'denied', '{ "name": "a.txt", "text": "alpha" }', 'not today']])
  t.strictSame(await readdir(folder), [])

  await ask(page, 'files', 'write a.txt: alpha')
  await asked(page)
  await button(page, 'Deny').click()
  await said(page, 'write_file: not done (Permission denied by user)')
})

test('a call runs with the arguments as they were edited, once they are an object', async (t, { open }) => {
  const { url, folder } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'files', 'write a.txt: alpha')
  await asked(page)
  const field = page.getByLabel('Arguments (JSON)')
  t.equal(await field.inputValue(), '{\n  "name": "a.txt",\n  "text": "alpha"\n}')
  for (const [text, sentence] of [['{"name": ', /^This is no JSON: /], ['["a.txt"]', /^Arguments are a JSON object/], ['null', /^Arguments are a JSON object/]] as const) {
    await field.fill(text)
    await button(page, 'Approve').click()
    const problem = page.locator('.approval .problem')
    t.match(await problem.textContent(), sentence)
    t.equal(await field.getAttribute('aria-invalid'), 'true')
    t.equal(await field.getAttribute('aria-describedby'), await problem.getAttribute('id'))
    t.equal(await page.evaluate('document.activeElement.getAttribute("aria-describedby")'), await problem.getAttribute('id'), 'the focus is where the mistake is')
  }
  await field.fill('{ "name": "b.txt", "text": "beta" }')
  t.equal(await field.getAttribute('aria-invalid'), 'false')
  await button(page, 'Approve').click()
  await said(page, 'write_file: Wrote 4 bytes to "b.txt".')
  await settled(page)
  t.strictSame(await cards(page), [['write_file', 'done', '{ "name": "b.txt", "text": "beta" }', 'Wrote 4 bytes to "b.txt".']])
  t.equal(await page.locator('.tool .arguments h3').textContent(), 'Edited by you')
  t.strictSame(await readdir(folder), ['b.txt'])
  t.equal(await readFile(join(folder, 'b.txt'), 'utf8'), 'beta')
})

test('two calls are answered together, each in its own way', async (t, { open }) => {
  const { url, folder } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'files', 'write a.txt: alpha\nlist\nwrite b.txt: beta')
  await asked(page, 2)
  t.equal(await page.locator('#approvals-title').textContent(), 'The agent asks for 2 approvals')
  const [first, second] = [page.locator('.approval').nth(0), page.locator('.approval').nth(1)]
  await first.getByRole('radio', { name: 'Approve' }).check()
  await button(page, 'Send answers').click()
  t.equal(await page.locator('#approvals-problem').textContent(), 'Approve or deny each of them.')
  await second.getByRole('radio', { name: 'Deny' }).check()
  await second.getByLabel('Reason for the agent, if you deny').fill('one is enough')
  await button(page, 'Send answers').click()
  await said(page, 'write_file: not done (one is enough)')
  await settled(page)
  t.strictSame(await cards(page), [
    ['write_file', 'done', '{ "name": "a.txt", "text": "alpha" }', 'Wrote 5 bytes to "a.txt".'],
    ['list_files', 'done', '{}', 'There are no files.'],
    ['write_file', 'denied', '{ "name": "b.txt", "text": "beta" }', 'one is enough']
  ])
  t.strictSame(await readdir(folder), ['a.txt'])
})

test('a question can wait, survives a reload, and holds the conversation until it is answered', async (t, { open }) => {
  const { url, folder } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'files', 'write a.txt: alpha')
  await asked(page)
  await button(page, 'Later').click()
  await page.locator('#questions', { hasText: 'A call waits for your approval.' }).waitFor()
  t.ok(await page.locator('#send').isDisabled())
  t.equal(await page.locator('#connection').textContent(), 'Waiting for you')
  await page.getByRole('button', { name: 'Review' }).click()
  await asked(page)
  await page.keyboard.press('Escape')
  await page.locator('dialog:not([open])').waitFor({ state: 'attached' })

  await page.reload()
  await asked(page)
  t.strictSame(await transcript(page), ['user: write a.txt: alpha'])
  await button(page, 'Approve').click()
  await said(page, 'Wrote 5 bytes')
  await settled(page)
  t.strictSame(await readdir(folder), ['a.txt'])
})

test('a question that was answered in another tab is not answered again, and the page shows what came of it', async (t, { open }) => {
  const { url, folder } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'files', 'write a.txt: alpha')
  await asked(page)
  const opened = page.context().waitForEvent('page')
  await button(page, 'Later').click()
  await page.locator('#questions').waitFor()
  // A duplicated tab starts with what this one has stored.
  await page.evaluate('{ window.dispatchEvent(new Event("pagehide")); window.open(location.href) }')
  const other = await opened
  await asked(other)
  await button(other, 'Approve').click()
  await said(other, 'Wrote 5 bytes')
  t.strictSame(await readdir(folder), ['a.txt'])

  await page.bringToFront()
  await page.getByRole('button', { name: 'Review' }).click()
  await asked(page)
  await button(page, 'Deny').click()
  await said(page, 'Wrote 5 bytes')
  await settled(page)
  t.strictSame((await cards(page)).map(([name, state]) => [name, state]), [['write_file', 'done']])
  t.match((await transcript(page)).at(-1), /^note: The thread has no open interrupt/, 'and it says what the server said')
  t.notOk(await page.locator('#questions').isVisible())
})

test('an answer whose run fails is not asked for again', async (t, { open }) => {
  const { url, agent } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'steered', 'Do it')
  const asking = await agent.next()
  const toolCall = { type: 'tool_use' as const, id: 'c1', name: 'launch', input: { where: 'moon' } }
  asking.push(
    { type: 'TOOL_CALL_START', replyId: 'r', toolCallId: 'c1', toolCallName: 'launch' },
    { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '{"where":"moon"}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
    { type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [toolCall] }
  )
  asking.end()
  await asked(page)
  await button(page, 'Approve').click()
  const failing = await agent.next()
  t.match(failing.input.resume, [{ kind: 'confirm', toolCallId: 'c1', approved: true }])
  failing.fail(new AgentError({ code: 'NO_FUEL', message: 'There is no fuel.', expose: true }))
  await page.locator('.note', { hasText: 'There is no fuel.' }).waitFor()
  t.notOk(await page.locator('dialog').isVisible())
  t.strictSame(await cards(page), [['launch', 'not answered', '{ "where": "moon" }', '']])
  await ask(page, 'calculator', '1+1')
  await said(page, '1+1 = 2.')
})

test('a question that the server has lost is given up in words', async (t, { open }) => {
  const { app, url, port, folder } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  await ask(page, 'files', 'write a.txt: alpha')
  await asked(page)
  await app.close()
  const next = await buildServer({ folder, logLevel: 'silent', wordMs: 0 })
  t.teardown(() => next.close())
  await next.listen({ port, host: '127.0.0.1' })
  await page.reload()
  await page.locator('.note', { hasText: 'The server was restarted and does not know this run any more.' }).waitFor()
  t.strictSame((await cards(page)).map(([name, state]) => [name, state]), [['write_file', 'not answered']])
  await page.getByRole('button', { name: 'Ask again' }).click()
  await asked(page)
  await button(page, 'Approve').click()
  await said(page, 'Wrote 5 bytes')
})

test('everything can be done with the keyboard alone', async (t, { open }) => {
  const { url, folder, agent } = await serveExample(t)
  const page = await open(url)
  await page.locator('#agent:enabled').waitFor()
  t.equal(await page.evaluate('document.activeElement.id'), 'text', 'it starts where one writes')
  await moveTo(page, 'Shift+Tab', '#agent')
  await page.keyboard.type('files')
  t.equal(await page.locator('#agent').inputValue(), 'files')
  await moveTo(page, 'Tab', '#text')
  await page.keyboard.type('write a.txt: alpha')
  await page.keyboard.press('Shift+Enter')
  await page.keyboard.type('write b.txt: beta')
  await page.keyboard.press('Enter')

  await asked(page, 2)
  t.equal(await page.evaluate('document.activeElement.id'), 'approvals-title', 'a screen reader reads what is asked')
  await page.keyboard.press('Escape')
  await moveTo(page, 'Shift+Tab', '#review')
  await page.keyboard.press('Enter')
  await asked(page, 2)
  await moveTo(page, 'Tab', '[name=choice-0]')
  await page.keyboard.press('Space')
  await moveTo(page, 'Tab', '.arguments textarea')
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.type('{"name":"c.txt","text":"gamma"}')
  await moveTo(page, 'Tab', '[name=choice-1]')
  await page.keyboard.press('ArrowRight')
  await moveTo(page, 'Tab', '.reason input')
  await page.keyboard.type('no')
  await moveTo(page, 'Tab', 'dialog .several')
  for (let count = 0; count < 20; count++) {
    await page.keyboard.press('Tab')
    t.ok(await page.evaluate('document.activeElement === document.body || document.querySelector("dialog").contains(document.activeElement)'), 'the focus stays inside')
  }
  await moveTo(page, 'Tab', 'dialog .several')
  await page.keyboard.press('Enter')
  await said(page, 'Wrote 5 bytes to "c.txt"')
  await settled(page)
  t.strictSame(await readdir(folder), ['c.txt'])
  t.equal(await page.evaluate('document.activeElement.id'), 'text')

  await moveTo(page, 'Shift+Tab', '#agent')
  await page.keyboard.type('steered')
  await moveTo(page, 'Tab', '#text')
  await page.keyboard.type('Talk')
  await page.keyboard.press('Enter')
  const run = await agent.next()
  run.push({ type: 'THINKING_BLOCK_DELTA', delta: 'Well.' })
  await page.locator('.reasoning').waitFor()
  await moveTo(page, 'Shift+Tab', '.reasoning summary')
  await page.keyboard.press('Enter')
  await page.locator('.reasoning .text', { hasText: 'Well.' }).waitFor()
  await moveTo(page, 'Tab', '#stop')
  await page.keyboard.press('Enter')
  await run.over
  await settled(page)
  t.equal((await transcript(page)).at(-1), 'note: Stopped.')
})
