// The example's page as a user sees it.
import { mkdtemp } from 'node:fs/promises'
import { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FastifyInstance } from 'fastify'
import { type Locator, type Page } from 'playwright-core'
import { type Test } from 'tap'
import { buildServer } from '../../examples/app.ts'
import { chosenModel } from './example-model.ts'
import { steered, type Steered } from './steered-agent.ts'

/** A running example with one more agent, which the test drives. */
export interface ServedExample {
  readonly app: FastifyInstance
  readonly url: string
  readonly port: number
  readonly folder: string
  /** Registered as `steered`. */
  readonly agent: Steered
}

/** Serves the example on a free port, its agents speaking without a pause. */
export async function serveExample (t: Test, wordMs = 0): Promise<ServedExample> {
  const folder = await mkdtemp(join(tmpdir(), 'example-page-'))
  const app = await buildServer({ folder, logLevel: 'silent', wordMs, model: chosenModel() })
  t.teardown(() => app.close())
  const agent = steered()
  app.agents.registry.register('steered', agent)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo // listens on TCP
  return { app, port, url: `http://127.0.0.1:${port}/`, folder, agent }
}

/** Asks an agent by the composer; resolves when the question stands in the conversation. */
export async function ask (page: Page, agent: string, text: string): Promise<void> {
  const count = await page.locator('.user').count()
  await page.locator('#agent').selectOption(agent)
  await page.locator('#text').fill(text)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.locator('.user').nth(count).waitFor()
}

/** Resolves when nothing runs any more. */
export async function settled (page: Page): Promise<void> {
  await page.locator('#log[aria-busy=false]').waitFor()
}

/** Resolves when an answer holds this text; yields the answer. */
export async function said (page: Page, text: string): Promise<Locator> {
  const answer = page.locator('.assistant .text', { hasText: text }).last()
  await answer.waitFor()
  return answer
}

/** Tool cards in their order: name, state, arguments, result. */
export async function cards (page: Page): Promise<string[][]> {
  return await page.locator('.tool').evaluateAll((elements) => elements.map((element) =>
    ['.name', '.state', '.arguments pre', '.result pre'].map((part) => element.querySelector(part)?.textContent ?? '')))
}

/** The whole transcript as text: what every bubble and answer says, in order. */
export async function transcript (page: Page): Promise<string[]> {
  return await page.locator('#log > :is(.user, .assistant, .note)').evaluateAll((elements) => elements.map((element) =>
    `${element.classList[0]}: ${element.querySelector('.text')?.textContent ?? ''}`))
}
