import { type FastifyReply } from 'fastify'
import { type Cursor, type EventBus, formatCursor, type Gap, type Topic } from '../../lib/bus/index.ts'
import { acceptsEventStream, encodeFrame, type SseHub, type SseResponse, sseView } from '../../lib/sse/index.ts'
import { NotAcceptableError } from './errors.ts'

/** Where a stream of {@link FastifyReply.stream} starts. */
export interface StreamOptions {
  /**
   * The last event a client has seen that brings no Last-Event-ID header: `<epoch>.<seq>`, as the ids of the stream say. A
   * header wins, because a client that reconnects by itself repeats the URL it began with.
   */
  readonly after?: Cursor | string | undefined
  /** Without any cursor: `live` from the next event on, `start` from the oldest that is kept. @default 'live' */
  readonly from?: 'live' | 'start' | undefined
}

const view = sseView()

/** Answers a request with a topic; see {@link FastifyReply.stream}. */
export function streamTopic (bus: EventBus, hub: SseHub, reply: FastifyReply, key: string, options: StreamOptions): SseResponse {
  const { accept, 'last-event-id': lastEventId } = reply.request.headers
  if (!acceptsEventStream(accept)) throw new NotAcceptableError()
  if (reply.request.method === 'HEAD') return hub.open(reply)

  const topic = bus.topic(key, { lifetime: 'use' })
  const after = typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : options.after
  const from = options.from ?? 'live'
  const response = hub.open(reply)
  // Whoever starts live and is cut off before the first event would otherwise come back without a cursor, and miss what came meanwhile.
  if (after === undefined && from === 'live') response.write(encodeFrame({ id: formatCursor(topic.epochAt(topic.stored), topic.stored) }))
  response.follow(topic, { view, after, from, gap: gapFrame })
  reply.request.log.debug({ topic: key, after }, 'topic streamed')
  return response
}

/** What stands in the place of events that are gone; the id is where the stream goes on. */
function gapFrame ({ oldest }: Gap, topic: Topic): string {
  return encodeFrame({ id: formatCursor(topic.epochAt(oldest - 1), oldest - 1), event: 'gap', data: JSON.stringify({ oldest }) })
}
