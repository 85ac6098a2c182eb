import t from 'tap'
import { acceptsEventStream } from '../../../lib/sse/index.ts'

for (const accept of [undefined, '', ' ', '*/*', 'text/*', 'text/event-stream', 'Text/Event-Stream', 'application/json, text/event-stream',
  'text/event-stream;q=0.1', 'text/event-stream; charset=utf-8', 'application/json, */*;q=0.5', 'text/*;q=0, text/event-stream',
  'text/event-stream;q=0, text/event-stream', 'text/event-stream, text/event-stream;q=0', 'text/event-stream;q=0.001']) {
  t.test(`takes a stream: ${accept}`, async (t) => { t.equal(acceptsEventStream(accept), true) })
}

for (const accept of ['application/json', 'text/html, application/json', 'text/event-stream;q=0', 'text/event-stream; q=0.000',
  '*/*;q=0', 'text/*;q=0, */*', '*/*, text/event-stream;q=0', 'text/event-stream;q=0, */*', 'text/event-streams']) {
  t.test(`does not take a stream: ${accept}`, async (t) => { t.equal(acceptsEventStream(accept), false) })
}
