import t from 'tap'
import { Bench, routesOf } from './bench.ts'
import { type MatrixProtocol, type Row, STATES } from './protocol.ts'

const OWNER = 'ann@acme'
/** Another user of the same tenant, the same name in another tenant, and without one. */
const STRANGERS = ['bob@acme', 'ann@umbrella', 'ann'] as const
// Equally long, so that even the lengths of the answers are the same.
const OWN_ID = 'thing-of-ann'
const UNKNOWN_ID = 'thing-of-nob'

/** `METHOD /path` with its rows; those of HEAD are made from those of GET. */
function rowsOf ({ rows }: MatrixProtocol): readonly (readonly [method: string, route: string, name: string, row: Row])[] {
  return Object.entries(rows).flatMap(([route, ways]) => Object.entries(ways).flatMap(([name, row]) => {
    const [method = ''] = route.split(' ')
    return (method === 'GET' ? ['GET', 'HEAD'] : [method]).map((verb) => [verb, route.replace(/^\S+/, verb), name, row] as const)
  }))
}

/**
 * Plays a protocol's rows: for each route, method and way of using it, and each state of a run, a stranger is told the same of somebody
 * else's run as of one that does not exist, whole answers compared, and the run is left as it was.
 */
export function playMatrix (protocol: MatrixProtocol): void {
  t.test(`${protocol.name}: every route and method has its rows`, async (t) => {
    const covered = new Set([...rowsOf(protocol).map(([, route]) => route), ...Object.keys(protocol.exempt).flatMap((route) => [route, route.replace(/^GET /, 'HEAD ')])])
    const routes = await routesOf(protocol)
    t.strictSame(routes.filter((route) => !covered.has(route)), [], 'a route without a row')
    t.strictSame([...covered].filter((route) => !routes.includes(route) && !route.startsWith('HEAD ')), [], 'a row without a route')
  })

  for (const [method, route, name, row] of rowsOf(protocol)) {
    t.test(`${protocol.name}: ${route}: who ${name} is told the same of somebody else's as of what does not exist`, async (t) => {
      for (const [index, state] of STATES.entries()) {
        const bench = await Bench.open(t, protocol)
        const own = await bench.arrange(OWNER, OWN_ID, state)
        const before = await bench.records(OWNER)
        const unknown = { ...own, id: UNKNOWN_ID }
        // A stranger a state: each is another owner, and none must know more than the others.
        const stranger = STRANGERS[index] as string // there are as many
        const toUnknown = await bench.ask(stranger, row.request(unknown), method, unknown)
        const toForeign = await bench.ask(stranger, row.request(own), method, own)
        t.strictSame(toForeign, toUnknown, `${state}, ${stranger}`)
        t.notMatch(toForeign.body, /secret/)
        t.strictSame(await bench.records(OWNER), before, 'the run is as it was')
        t.equal(bench.isUntouched, true)

        const toOwner = await bench.askOwn(OWNER, row.request(own), method, own)
        if (row.differs.includes(state)) t.notSame(toOwner, toUnknown, `${state}: its owner is told something else`)
      }
    })
  }
}
