import { agentProtocol } from '../../plugins/agent-protocol/index.ts'
import { artifactId } from '../../plugins/agent-protocol/workspace.ts'
import { type MatrixProtocol, type Row, STATES, type Target } from './protocol.ts'

/** A submission that is the same whenever it is made. */
const submission = (id: string): Readonly<Record<string, unknown>> => ({ task_id: id, agent_id: 'agent', input: 'Hi' })

const get = (path: (target: Target) => string, headers?: (target: Target) => Readonly<Record<string, string>>): Row =>
  ({ request: (target) => ({ url: path(target), ...headers !== undefined && { headers: headers(target) } }), differs: STATES })

const post = (path: (id: string) => string, body?: (target: Target) => unknown, differs = STATES as Row['differs']): Row =>
  ({ request: (target) => ({ url: path(target.id), ...body !== undefined && { body: body(target) } }), differs })

/** The log of a task that is over: the one file whose id everybody knows. */
const LOG = artifactId('run.log')

const upload = (path: (id: string) => string): Row => ({
  request: ({ id }) => ({
    url: path(id),
    body: '--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\ncontent-type: text/plain\r\n\r\nhello\r\n--b--\r\n',
    headers: { 'content-type': 'multipart/form-data; boundary=b' }
  }),
  differs: STATES
})

/** Agent Protocol under a prefix: tasks. */
export function taskMatrix (name: string, prefix: string, compat?: 'reference'): MatrixProtocol {
  const task = (id: string): string => `${prefix}/tasks/${id}`
  const classic = `${prefix}/ap/v1/agent/tasks`
  return {
    name,
    register: async (app) => {
      // A reader that comes before its task waits for it, whoever it will be: short enough to be waited for here.
      await app.register(agentProtocol, { subscribeGraceMs: 20, ...prefix !== '' && { prefix }, ...compat !== undefined && { compat } })
    },
    arrange: (id) => ({ url: `${prefix}/tasks`, body: submission(id) }),
    isStreamed: false,
    rows: {
      [`POST ${prefix}/tasks`]: {
        'submits it again': post(() => `${prefix}/tasks`, ({ id }) => submission(id)),
        'submits another one under its id': post(() => `${prefix}/tasks`, ({ id }) => ({ ...submission(id), input: 'other' })),
        'submits to its session': post(() => `${prefix}/tasks`, ({ id }) => ({ ...submission(`n-${id}`), context: { session_id: id } }), ['waiting'])
      },
      [`GET ${prefix}/tasks`]: {
        'lists its session': get(({ id }) => `${prefix}/tasks?session_id=${id}`),
        'lists everything': get(() => `${prefix}/tasks`)
      },
      [`GET ${prefix}/tasks/:taskId`]: { 'looks at it': get(({ id }) => task(id)) },
      [`GET ${prefix}/tasks/:taskId/wait`]: {
        'waits for it': get(({ id }) => `${task(id)}/wait?timeout_seconds=30`),
        'asks without waiting': get(({ id }) => `${task(id)}/wait?timeout_seconds=0`)
      },
      [`POST ${prefix}/tasks/:taskId/cancel`]: { 'cancels it': post((id) => `${task(id)}/cancel`), 'cancels it with a reason': post((id) => `${task(id)}/cancel`, () => ({ reason: 'x' })) },
      [`GET ${prefix}/tasks/:taskId/events`]: {
        'follows it': get(({ id }) => `${task(id)}/events`),
        'follows it from a sequence': get(({ id }) => `${task(id)}/events?from_seq=1&detail=status`),
        'follows it after an event': get(({ id }) => `${task(id)}/events`, ({ cursor }) => ({ 'last-event-id': cursor })),
        'fails on a gap': get(({ id }) => `${task(id)}/events?from_seq=9999&gap=fail`)
      },
      [`POST ${prefix}/tasks/:taskId/resume`]: {
        // Only who waits can be answered: as the reference has it, every other task answers as an unknown one does.
        'answers it': post((id) => `${task(id)}/resume`, ({ interruptId }) => ({ decisions: [{ tool_call_id: interruptId, approved: true }] }), compat === undefined ? STATES : ['waiting'])
      },
      [`DELETE ${prefix}/tasks/:taskId`]: { 'deletes it': { request: ({ id }) => ({ url: task(id) }), differs: STATES } },
      [`GET ${prefix}/tasks/:taskId/artifacts`]: { 'lists its files': get(({ id }) => `${task(id)}/artifacts`) },
      [`POST ${prefix}/tasks/:taskId/artifacts`]: { 'uploads a file': upload((id) => `${task(id)}/artifacts`) },
      [`GET ${prefix}/tasks/:taskId/artifacts/:artifactId`]: { 'downloads a file': get(({ id }) => `${task(id)}/artifacts/${LOG}`) },
      [`GET ${classic}`]: { 'lists tasks the classic way': get(() => classic) },
      [`GET ${classic}/:task_id`]: { 'looks at it the classic way': get(({ id }) => `${classic}/${id}`) },
      [`GET ${classic}/:task_id/steps`]: { 'lists its steps': get(({ id }) => `${classic}/${id}/steps`) },
      [`POST ${classic}/:task_id/steps`]: {
        'makes a step': post((id) => `${classic}/${id}/steps`, () => ({ input: 'next' })),
        'answers by a step': post((id) => `${classic}/${id}/steps`, ({ interruptId }) => ({ additional_input: { decisions: [{ tool_call_id: interruptId, approved: true }] } }))
      },
      [`GET ${classic}/:task_id/steps/:step_id`]: { 'looks at a step': get(({ id, runId }) => `${classic}/${id}/steps/${runId}`) },
      [`GET ${classic}/:task_id/artifacts`]: { 'lists its files the classic way': get(({ id }) => `${classic}/${id}/artifacts`) },
      [`POST ${classic}/:task_id/artifacts`]: { 'uploads a file the classic way': upload((id) => `${classic}/${id}/artifacts`) },
      [`GET ${classic}/:task_id/artifacts/:artifact_id`]: { 'downloads a file the classic way': get(({ id }) => `${classic}/${id}/artifacts/${LOG}`) }
    },
    exempt: {
      [`GET ${prefix}/agents`]: 'agents are everybody\'s',
      [`POST ${classic}`]: 'makes a task under an id of our own'
    }
  }
}
