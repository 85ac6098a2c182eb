// The page once more, with the example's agents run by a model over the AI SDK bridge: what a user sees and can do is the same.
import t from 'tap'
import { runByModel } from '../helpers/example-model.ts'

const model = runByModel()
await import('./page-approvals.test.ts')
await import('./page.test.ts')

t.test('the model was asked', async (t) => {
  t.ok(model.doStreamCalls.length > 20, `${model.doStreamCalls.length} requests`)
})
