// Drives a page in the Chromium that is installed. Every test that uses it also proves that the page has nothing to complain of and talks to its own host alone.
import { existsSync } from 'node:fs'
import { type Test } from 'tap'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'

const EXECUTABLE = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium'
const MISSING = `there is no Chromium at ${EXECUTABLE}: apt-get install chromium, or set CHROMIUM_PATH`

/** What {@link BrowserTest.open} takes beside Playwright's own options. */
export interface OpenOptions extends BrowserContextOptions {
  /** Console errors that the test itself causes, such as those of a server it has killed. */
  readonly expects?: RegExp
}

/** What a test in a browser works with. */
export interface BrowserTest {
  /** Opens an address in a context of its own, with nothing stored. */
  open (url: string, options?: OpenOptions): Promise<Page>
}

/** Registers a test in a browser. */
export type RegisterBrowserTest = (name: string, body: (t: Test, browser: BrowserTest) => Promise<void>) => void

/**
 * Makes the function that registers a file's browser tests; they share one Chromium. Without one they are skipped by name, except in CI, where they fail.
 */
export function browserTests (t: Test): RegisterBrowserTest {
  const isMissing = !existsSync(EXECUTABLE)
  let browser: Promise<Browser> | undefined
  t.teardown(async () => { await (await browser)?.close() })
  return (name, body) => {
    t.test(name, { skip: isMissing && process.env['CI'] === undefined && MISSING }, async (t) => {
      if (isMissing) return t.fail(MISSING)
      browser ??= chromium.launch({
        executablePath: EXECUTABLE,
        // Whatever the page should ask for elsewhere is not found, instead of being looked for.
        args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--disable-dev-shm-usage']
      })
      const running = await browser
      const complaints: string[] = []
      const strangers: string[] = []
      const open = async (url: string, { expects, ...options }: OpenOptions = {}): Promise<Page> => {
        const context = await running.newContext(options)
        t.teardown(() => context.close())
        const page = await context.newPage()
        page.setDefaultTimeout(30_000)
        page.on('console', (message) => {
          const text = `${message.type()}: ${message.text()}`
          if (['error', 'warning'].includes(message.type()) && expects?.test(text) !== true) complaints.push(text)
        })
        page.on('pageerror', (error) => { complaints.push(String(error.stack)) })
        const { origin } = new URL(url)
        page.on('request', (request) => { if (!request.url().startsWith('data:') && new URL(request.url()).origin !== origin) strangers.push(request.url()) })
        await page.goto(url)
        return page
      }
      await body(t, { open })
      t.strictSame(complaints, [], 'the page has nothing to complain of')
      t.strictSame(strangers, [], 'no request leaves the host')
    })
  }
}
