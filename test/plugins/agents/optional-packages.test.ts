import t from 'tap'
import { runScript } from '../../helpers/child.ts'

const script = new URL('optional-packages.ts', import.meta.url)

t.test('what no option asks for is not loaded', async (t) => {
  t.strictSame(await runScript(script, 'installed', 'none'), { error: null, loaded: [] })
  t.strictSame(await runScript(script, 'installed', 'tracing'), { error: null, loaded: ['@opentelemetry/api'] })
})

t.test('without the packages the server runs, and an option that needs one says in one sentence which', async (t) => {
  t.strictSame(await runScript(script, 'missing', 'none'), { error: null, loaded: [] })
  const missing = (option: string, name: string) => ({
    error: { code: 'AGT_ERR_PACKAGE_MISSING', message: `Option "${option}" needs a package that is not installed: npm install ${name}` }, loaded: []
  })
  t.strictSame(await runScript(script, 'missing', 'metrics'), missing('metrics', 'prom-client'))
  t.strictSame(await runScript(script, 'missing', 'tracing'), missing('tracing', '@opentelemetry/api'))
})
