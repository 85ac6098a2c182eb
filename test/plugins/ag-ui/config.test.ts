import t from 'tap'
import { resolveMappingConfig } from '../../../plugins/ag-ui/config.ts'
import { errorBody, invalidInputBody } from '../../../plugins/ag-ui/errors.ts'
import { chooseAgent } from '../../../plugins/ag-ui/routing.ts'

t.test('options have the defaults that the reference documents', async (t) => {
  t.strictSame(resolveMappingConfig(), {
    enableReasoning: false,
    emitTokenUsage: false,
    emitRunUsage: true,
    emitToolCallArgs: true,
    mapExtras: 'raw',
    rawFallback: true,
    subagentEvents: 'custom',
    subagentThinking: false,
    echoInput: true,
    eventConverters: [],
    eventEnrichers: [],
    baseEventPropertiesEnricherEnabled: false,
    emitRunFinishedAfterError: false,
    exposeErrors: false,
    unsupportedContent: 'error',
    frontendToolOutcome: 'success',
    profile: 'auto',
    legacyCancel: 'error'
  })
})

t.test('a configuration cannot be changed, and shares nothing with what it was made from', async (t) => {
  const eventEnrichers = [() => []]
  const config = resolveMappingConfig({ eventEnrichers })
  eventEnrichers.pop()
  t.equal(config.eventEnrichers.length, 1)
  t.throws(() => { (config as { exposeErrors: boolean }).exposeErrors = true })
  t.throws(() => { (config.eventEnrichers as unknown[]).push(1) })
  t.not(resolveMappingConfig(), resolveMappingConfig())
})

t.test('old names mean what they meant', async (t) => {
  t.equal(resolveMappingConfig({ emitSubagentEventsAsNative: true }).subagentEvents, 'flatten')
  t.equal(resolveMappingConfig({ emitSubagentEventsAsNative: false }).subagentEvents, 'custom')
  t.equal(resolveMappingConfig({ subagentEvents: 'flatten' }).subagentEvents, 'flatten')
})

t.test('a bad option is refused by name', async (t) => {
  for (const options of [
    { enableReasoning: 'yes' }, { mapExtras: 'none' }, { subagentEvents: 'native' }, { subagentEvents: 'custom', emitSubagentEventsAsNative: true }, { echoInput: 1 },
    { eventConverters: {} }, { eventConverters: [{ eventTypes: 'CUSTOM', convert () {} }] }, { eventConverters: [null] }, { eventEnrichers: ['x'] }, { profile: 'v2' }
  ]) t.throws(() => resolveMappingConfig(options as never), { code: 'AGT_ERR_OPTION_INVALID' }, JSON.stringify(options))
})

t.test('the agent is chosen by path, then header, then forwarded properties', async (t) => {
  const forwardedProps = { agentId: 'props' }
  t.equal(chooseAgent({ pathAgentId: 'path', headerAgentId: 'header', forwardedProps }), 'path')
  t.equal(chooseAgent({ pathAgentId: ' ', headerAgentId: 'header', forwardedProps }), 'header')
  t.equal(chooseAgent({ headerAgentId: '', forwardedProps }), 'props')
  t.equal(chooseAgent({ forwardedProps: { agentId: 7 } }), '7')
  t.equal(chooseAgent({ forwardedProps: { agentId: false } }), 'false')
  for (const props of [undefined, null, 'props', ['props'], {}, { agentId: null }, { agentId: {} }, { agentId: '  ' }]) t.equal(chooseAgent({ forwardedProps: props }), undefined)
})

t.test('JSON errors name the fields', async (t) => {
  t.strictSame(errorBody('X', 'text'), { error: { code: 'X', message: 'text' } })
  t.strictSame(invalidInputBody([{ path: 'threadId', reason: 'required' }, { path: 'runId', reason: 'must not be blank' }]), {
    error: {
      code: 'INVALID_INPUT_ERROR',
      message: 'threadId: required; runId: must not be blank',
      issues: [{ path: 'threadId', reason: 'required' }, { path: 'runId', reason: 'must not be blank' }]
    }
  })
})
