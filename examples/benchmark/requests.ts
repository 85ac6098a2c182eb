import { type RequestSpec } from './messages.ts'

/** The text of one HTTP request. `index` tells apart the requests of one load. */
export function requestText (request: RequestSpec, index: number): string {
  const headers = [`Host: 127.0.0.1:${request.port}`, 'Accept: text/event-stream']
  if (request.lastEventId !== undefined) headers.push(`Last-Event-ID: ${request.lastEventId}`)
  return `GET ${pathOf(request, index)} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
}

function pathOf ({ kind, plan }: RequestSpec, index: number): string {
  return plan === undefined ? `/${kind}` : `/${kind}?index=${index}&events=${plan.events}&pace=${plan.pace}`
}
