import t from 'tap'
import { type AgentEvent } from '../../../lib/agent/index.ts'
import { type MappingOptions, resolveMappingConfig } from '../../../plugins/ag-ui/config.ts'
import { type AgUiEvent } from '../../../plugins/ag-ui/event-schemas.ts'
import { createProjection } from '../../../plugins/ag-ui/events.ts'
import { type EventConverter, type EventEnricher, type StreamContext, withBaseProperties } from '../../../plugins/ag-ui/extension.ts'
import { between, call, completed, input, message, NOW, project, result, stamp, text, thinking } from './project.ts'

const converter = (eventTypes: EventConverter['eventTypes'], convert: EventConverter['convert'], handlesSubagent = false): EventConverter => ({ eventTypes, convert, handlesSubagent })
const emits = (event: unknown): MappingOptions => ({ eventConverters: [converter(['CUSTOM'], (_event, context) => { context.emit(event as AgUiEvent) })] })
const trigger = { type: 'CUSTOM', name: 'x', value: {} } as const

/** Runs to the end even where `next` throws, as the engine does. */
function survive (options: MappingOptions, events: readonly AgentEvent[]): { readonly lines: AgUiEvent[], readonly thrown: string[] } {
  const lines: AgUiEvent[] = []
  const thrown: string[] = []
  const emit = (data: string): void => { lines.push(JSON.parse(data)) }
  const projection = createProjection(resolveMappingConfig(options), { input, now: () => NOW })
  const steps = [() => { projection.open(emit) }, ...events.map((event) => () => { projection.next(event, emit) })]
  for (const step of steps) {
    try {
      step()
    } catch (error) {
      thrown.push((error as Error).message)
    }
  }
  projection.close({ kind: 'failed', error: { code: 'internal_error', message: 'The agent failed.' } }, emit)
  return { lines, thrown }
}

t.test('a converter', async (t) => {
  t.test('takes the place of the built-in one, and the last one wins', async (t) => {
    const first = converter(['CUSTOM'], () => { t.fail('overridden') })
    const last = converter(['CUSTOM'], (event, context) => {
      context.emit({ type: 'CUSTOM', name: 'mine', value: [event.type, context.threadId, context.runId, context.profile, context.input === input, context.config.enableReasoning, { ...context.usage }] })
    })
    t.strictSame(between([
      { type: 'MODEL_CALL_END', usage: { inputTokens: 1, outputTokens: 2 } }, trigger
    ], { eventConverters: [first, last] }), [
      { type: 'CUSTOM', name: 'mine', value: ['CUSTOM', 'th-7', 'rn-1', 'v1', true, false, { inputTokens: 1, outputTokens: 2 }] }
    ])
  })

  t.test('takes types that are otherwise not sent', async (t) => {
    const options = { eventConverters: [converter(['REQUIRE_EXTERNAL_EXECUTION'], (_event, { emit }) => { emit({ type: 'CUSTOM', name: 'handshake', value: null }) })] }
    t.strictSame(between([{ type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [] }], options), [{ type: 'CUSTOM', name: 'handshake', value: null }])
  })

  t.test('sees children only where it asks for them', async (t) => {
    const child = { type: 'TEXT_BLOCK_DELTA', source: 'main/child', delta: 'x' } as const
    const convert: EventConverter['convert'] = (_event, { emit }) => { emit({ type: 'CUSTOM', name: 'mine', value: null }) }
    t.match(between([child], { eventConverters: [converter(['TEXT_BLOCK_DELTA'], convert)] }), [{ name: 'subagent.text' }])
    t.match(between([child], { eventConverters: [converter(['TEXT_BLOCK_DELTA'], convert, true)] }), [{ name: 'mine' }])
  })

  t.test('ends what is open', async (t) => {
    const options = {
      enableReasoning: true,
      eventConverters: [converter(['CUSTOM'], (_event, context) => {
        context.closeMessages()
        context.closeToolCalls()
      })]
    }
    const types = between([text('a', 'x'), thinking('b', 'y'), ...call('c', 'k', 'f').slice(0, 1), trigger, text('a', 'z')], options).map(({ type }) => type)
    t.strictSame(types, [
      'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'TOOL_CALL_START',
      'TEXT_MESSAGE_END', 'REASONING_MESSAGE_END', 'TOOL_CALL_END', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'
    ])
  })

  t.test('that ends a message of the mapping does not make the rest of it illegal', async (t) => {
    const types = between([text('a', 'x'), trigger, text('a', 'lost')], emits({ type: 'TEXT_MESSAGE_END', messageId: 'a' })).map(({ type }) => type)
    t.strictSame(types, ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'])
  })

  t.test('is told in the shape of the protocol: without nulls, unknown members, fractions of text', async (t) => {
    t.strictSame(between([trigger], emits({ type: 'CUSTOM', name: 'a', value: { keep: null, big: 1n }, rawEvent: null, threadId: 'th-7', metadata: { k: null } })), [
      { type: 'CUSTOM', name: 'a', value: { keep: null, big: '1' }, metadata: { k: null } }
    ])
  })

  const wrong: Record<string, unknown> = {
    'no event': 'text',
    null: null,
    'an unknown type': { type: 'NOPE' },
    'a missing member': { type: 'CUSTOM', name: 'a' },
    'a float for a timestamp': { type: 'CUSTOM', name: 'a', value: 1, timestamp: 1.5 },
    'a pointer that is none': { type: 'STATE_DELTA', delta: [{ op: 'remove', path: 'a' }] },
    'an unknown role': { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'tool' },
    'a boundary': { type: 'RUN_FINISHED', threadId: 'th-7', runId: 'rn-1' },
    'an error of its own': { type: 'RUN_ERROR', message: 'x' }
  }
  for (const [what, event] of Object.entries(wrong)) {
    t.test(`that makes ${what} ends the run in an error, with everything closed`, async (t) => {
      const { lines, thrown } = survive(emits(event), [stamp(text('a', 'x')), stamp(trigger), stamp(text('a', 'never'))])
      t.equal(thrown.length, 1)
      t.strictSame(lines.slice(1), [
        { type: 'TEXT_MESSAGE_START', messageId: 'a', role: 'assistant' },
        { type: 'TEXT_MESSAGE_CONTENT', messageId: 'a', delta: 'x' },
        { type: 'TEXT_MESSAGE_END', messageId: 'a' },
        { type: 'RUN_ERROR', message: 'The agent\'s events could not be converted.', code: 'INTERNAL_ERROR', timestamp: NOW }
      ])
    })
  }

  t.test('that throws ends the run in an error whose text is shown where asked for', async (t) => {
    const options = { exposeErrors: true, eventConverters: [converter(['CUSTOM'], () => { throw new RangeError('mine') })] }
    t.strictSame(survive(options, [stamp(trigger)]).lines.slice(1), [{ type: 'RUN_ERROR', message: 'mine', code: 'INTERNAL_ERROR', timestamp: NOW }])
  })
})

t.test('enrichers', async (t) => {
  t.test('run in order over all that one agent event became, and see null for what the framework sends', async (t) => {
    const seen: unknown[] = []
    const note: EventEnricher = (source, events, context) => {
      seen.push([source?.type ?? null, events.map(({ type }) => type), context.runId])
      return events
    }
    const tag = (name: string): EventEnricher => (_source, events) => events.map((event) => ({ ...event, metadata: { order: `${String(event.metadata?.['order'] ?? '')}${name}` } }))
    const lines = project([text('r', 'x'), ...call('r', 'c', 'f').slice(0, 1)], { eventEnrichers: [tag('1'), note, tag('2')] })
    t.ok(lines.every((event) => event.metadata?.['order'] === '12'))
    t.strictSame(seen, [
      [null, ['RUN_STARTED'], 'rn-1'],
      ['TEXT_BLOCK_DELTA', ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT'], 'rn-1'],
      ['TOOL_CALL_START', ['TEXT_MESSAGE_END', 'TOOL_CALL_START'], 'rn-1'],
      [null, ['TOOL_CALL_END', 'RUN_FINISHED'], 'rn-1']
    ])
  })

  t.test('may drop and append', async (t) => {
    const only: EventEnricher = (_source, events) => events.filter(({ type }) => type !== 'CUSTOM')
    const more: EventEnricher = (source, events) => source === null ? events : [...events, { type: 'CUSTOM', name: 'traced', value: source.type }]
    t.strictSame(between([trigger, ...result('r', 'c', 'x').slice(-1)], { eventEnrichers: [only, more] }), [
      { type: 'CUSTOM', name: 'traced', value: 'CUSTOM' },
      { type: 'TOOL_CALL_RESULT', messageId: 'r:c', toolCallId: 'c', content: '', role: 'tool' },
      { type: 'CUSTOM', name: 'traced', value: 'TOOL_RESULT_END' }
    ])
  })

  t.test('cannot remove, double or move the boundaries', async (t) => {
    const none = project([text('r', 'x')], { eventEnrichers: [() => []] })
    t.strictSame(none.map(({ type }) => type), ['RUN_STARTED', 'RUN_FINISHED'])
    const wild: EventEnricher = (_source, events) => [
      { type: 'CUSTOM', name: 'first', value: 1 }, { type: 'RUN_ERROR', message: 'x' }, ...events.toReversed(), ...events
    ]
    t.strictSame(project([trigger], { eventEnrichers: [wild] }).map(({ type }) => type), [
      'RUN_STARTED', 'CUSTOM', 'CUSTOM', 'CUSTOM', 'CUSTOM', 'CUSTOM', 'RUN_FINISHED'
    ])
  })

  t.test('that throw end the run in an error, at whatever point they do', async (t) => {
    const at = (point: number): EventEnricher => {
      let count = 0
      return (_source, events) => {
        if (count++ === point) throw new Error('mine')
        return events
      }
    }
    for (const point of [0, 1, 2]) {
      const types = survive({ eventEnrichers: [at(point)] }, [stamp(text('r', 'x'))]).lines.map(({ type }) => type)
      t.strictSame([types[0], types.at(-1), types.filter((type) => type === 'RUN_STARTED').length], ['RUN_STARTED', 'RUN_ERROR', 1], `at ${point}`)
    }
  })

  t.test('that make nonsense end the run in an error', async (t) => {
    const { lines } = survive({ eventEnrichers: [(source, events) => source === null ? events : [{ type: 'NOPE' } as never]] }, [stamp(trigger)])
    t.strictSame(lines.map(({ type }) => type), ['RUN_STARTED', 'RUN_ERROR'])
  })
})

t.test('the base properties enricher', async (t) => {
  t.test('fills timestamps that are missing, also behind other enrichers', async (t) => {
    const own: EventEnricher = (_source, events) => events.map((event) => event.type === 'CUSTOM' ? withBaseProperties(event, 7.9, { raw: 1 }) : event)
    t.strictSame(project([trigger], { baseEventPropertiesEnricherEnabled: true, eventEnrichers: [own] }).map(({ type, timestamp, rawEvent }) => [type, timestamp, rawEvent]), [
      ['RUN_STARTED', NOW, undefined], ['CUSTOM', 7, { raw: 1 }], ['RUN_FINISHED', NOW, undefined]
    ])
  })

  t.test('is off by default, except for errors', async (t) => {
    t.strictSame(project([trigger], {}, {}, { kind: 'timeout' }).map(({ timestamp }) => timestamp), [undefined, undefined, NOW])
  })
})

t.test('withBaseProperties keeps what is there and adds no null', async (t) => {
  const event: AgUiEvent = { type: 'CUSTOM', name: 'a', value: 1, timestamp: 1, rawEvent: 'kept' }
  t.strictSame(withBaseProperties(event, 2, 'other'), event)
  t.strictSame(withBaseProperties({ type: 'CUSTOM', name: 'a', value: 1 }, undefined, null), { type: 'CUSTOM', name: 'a', value: 1 })
})

t.test('a context belongs to one run', async (t) => {
  const contexts = new Set<StreamContext>()
  const options = { eventConverters: [converter(['CUSTOM'], (_event, context) => { contexts.add(context) })] }
  project([trigger, trigger], options, {}, completed)
  project([trigger], options, {}, { kind: 'completed', reason: 'MODEL_STOP', message })
  t.equal(contexts.size, 2)
})
