/** Ranges of `Accept` that cover an event stream, the most specific last. */
const RANGES = ['*/*', 'text/*', 'text/event-stream']

/**
 * Whether a request's `Accept` header takes `text/event-stream`; a missing or empty one takes everything.
 * The most specific range decides, and only `q=0` refuses. RFC 9110, 12.5.1.
 */
export function acceptsEventStream (accept: string | undefined): boolean {
  // Nearly all say the one or the other.
  if (accept === undefined || accept === 'text/event-stream' || accept === '*/*' || accept.trim() === '') return true
  let best = -1
  let taken = false
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const rank = RANGES.indexOf(type)
    if (rank === -1 || rank < best) continue
    const refused = parameters.some((parameter) => /^q\s*=\s*0(\.0*)?$/.test(parameter))
    taken = rank === best ? taken || !refused : !refused
    best = rank
  }
  return taken
}
