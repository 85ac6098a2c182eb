// Any sequence of answers, right and wrong, alone and at the same moment, does each approved call exactly once and nothing else.
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { memoryStore, wrapStore } from '../../../../lib/stores/index.ts'
import { checkOrder, checkShape, type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { buildApp, request } from '../../../helpers/ag-ui-app.ts'
import { answer, approving, noted } from '../../../helpers/approving-agent.ts'

const USER = { id: 'u1', role: 'user', content: 'del {"call":1}\ndel {"call":2}' }
const IDS = ['reply-u1:u1-1', 'reply-u1:u1-2'] as const

type Choice = 'approve' | 'deny' | 'cancel' | 'edit'
/** Answers to both questions, in either order. */
interface Full { readonly kind: 'full', readonly choices: readonly [Choice, Choice], readonly reversed: boolean }
type Sent = Full | { readonly kind: 'partial' | 'unknown' | 'duplicate' | 'bad-edit' | 'none' }

const choice = fc.constantFrom<Choice>('approve', 'deny', 'cancel', 'edit')
const full: fc.Arbitrary<Sent> = fc.record({ kind: fc.constant('full' as const), choices: fc.tuple(choice, choice), reversed: fc.boolean() })
const wrong = fc.constantFrom<Sent>({ kind: 'partial' }, { kind: 'unknown' }, { kind: 'duplicate' }, { kind: 'bad-edit' })
const step = fc.oneof(
  { weight: 3, arbitrary: full.map((sent) => [sent]) },
  { weight: 2, arbitrary: wrong.map((sent) => [sent]) },
  { weight: 2, arbitrary: fc.constant<Sent[]>([{ kind: 'none' }]) },
  { weight: 3, arbitrary: fc.array(fc.oneof({ weight: 3, arbitrary: full }, { weight: 1, arbitrary: wrong }), { minLength: 2, maxLength: 4 }) },
  // The same answer, pressed several times.
  { weight: 2, arbitrary: full.chain((sent) => fc.integer({ min: 2, max: 4 }).map((count) => Array.from({ length: count }, () => sent))) }
)

function entryOf (id: string, choice: Choice): Record<string, unknown> {
  switch (choice) {
    case 'approve': return answer(id, { approved: true })
    case 'edit': return answer(id, { approved: true, editedArgs: { edited: id } })
    case 'deny': return answer(id, { approved: false })
    case 'cancel': return answer(id, undefined, 'cancelled')
  }
}

function resumeOf (sent: Sent): Record<string, unknown>[] | undefined {
  const yes = IDS.map((id) => entryOf(id, 'approve'))
  switch (sent.kind) {
    case 'none': return undefined
    case 'partial': return yes.slice(0, 1)
    case 'unknown': return [...yes, entryOf('x', 'approve')]
    case 'duplicate': return [...yes, ...yes]
    case 'bad-edit': return [...yes.slice(0, 1), answer(IDS[1], { approved: true, editedArgs: 'x' })]
    case 'full': {
      const entries = IDS.map((id, index) => entryOf(id, sent.choices[index] as Choice))
      return sent.reversed ? entries.reverse() : entries
    }
  }
}

/** What an accepted answer makes the tool do. */
function effectOf ({ choices }: Full): object[] {
  return choices.flatMap((choice, index): object[] => choice === 'approve' ? [{ call: index + 1 }] : choice === 'edit' ? [{ edited: IDS[index] }] : [])
}

const keyOf = (sent: Sent): string => JSON.stringify(sent.kind === 'full' ? sent.choices : sent)

for (const concurrency of ['reject', 'queue', 'supersede'] as const) {
  t.test(`every approved call runs once, and nothing else does, with concurrency ${concurrency}`, async (t) => {
    const tool = noted('del')
    let seed = 1
    const store = wrapStore(memoryStore(), async (_operation, run) => {
      // Some answers take longer than others, so that requests overtake each other.
      seed = (seed * 48_271) % 2_147_483_647
      for (let ticks = seed % 4; ticks > 0; ticks--) await setImmediate()
      return await run()
    })
    const server = await buildApp(t, { agent: approving([tool]), concurrency, store })
    let threads = 0

    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), fc.integer({ min: 1, max: 1_000_000 }), async (steps, first) => {
      seed = first
      const threadId = `thread-${threads++}`
      let runs = 0
      const post = async (path: string, payload: object): Promise<WireEvent[]> => {
        const response = await server.app.inject({ method: 'POST', url: path, payload })
        if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.payload}`)
        const events = response.payload.split('\n').flatMap((line) => line.startsWith('data: ') ? [checkShape(JSON.parse(line.slice(6)))] : [])
        checkOrder(events)
        return events
      }
      const send = async (sent: Sent): Promise<{ readonly sent: Sent, readonly end: WireEvent | undefined }> => {
        const resume = resumeOf(sent)
        const events = await post('/agui/run', request({ threadId, runId: `run-${runs++}`, messages: [USER], ...resume !== undefined && { resume } }))
        return { sent, end: events.at(-1) }
      }
      const must = (condition: boolean, what: string): void => { if (!condition) throw new Error(what) }

      tool.ran.length = 0
      const expected: object[] = []
      await send({ kind: 'none' })
      let isOpen = true
      let accepted: string | undefined
      for (const together of steps) {
        const results = await Promise.all(together.map(send))
        const taken = results.filter(({ end }) => end?.type === 'RUN_FINISHED')
        for (const { end } of results) {
          const code = end?.type === 'RUN_ERROR' ? end.code : ''
          must(code === '' || code === 'AGUI_INTERRUPT_CONTRACT_ERROR' || code === 'INVALID_INPUT_ERROR', `refused with ${code}`)
        }
        const [only] = together
        if (only?.kind === 'none') {
          // It asks the same again, unless something is open.
          must(taken.length === (isOpen ? 0 : 1), 'a run that answers nothing')
          if (!isOpen) [isOpen, accepted] = [true, undefined]
        } else {
          const keys = new Set(taken.map(({ sent }) => keyOf(sent)))
          must(taken.every(({ sent }) => sent.kind === 'full'), 'a wrong answer was taken')
          must(keys.size <= 1, 'two different answers were taken')
          const [first] = taken
          if (isOpen && first?.sent.kind === 'full') {
            expected.push(...effectOf(first.sent));
            [isOpen, accepted] = [false, keyOf(first.sent)]
          } else if (isOpen) {
            must(together.every(({ kind }) => kind !== 'full'), 'a right answer was refused')
          } else {
            // What was answered stays answered: only the same answer is shown its run again.
            for (const { sent, end } of results) must((end?.type === 'RUN_FINISHED') === (keyOf(sent) === accepted), `an old answer: ${keyOf(sent)} after ${accepted}`)
          }
        }
        must(JSON.stringify(tool.ran) === JSON.stringify(expected), `ran ${JSON.stringify(tool.ran)} instead of ${JSON.stringify(expected)}`)
        const open = await server.host.engine.openInterrupts({}, 'ag-ui', threadId)
        must(open.length === (isOpen ? 2 : 0), `${open.length} are open`)
        const shown = (await post('/agui/connect', { threadId })).at(-1)
        must((shown?.type === 'RUN_FINISHED' && shown.outcome?.type === 'interrupt') === isOpen, 'a reloaded page is shown something else')
      }
    }), { numRuns: 40 })
    t.pass('for all of them')
  })
}
