import { HttpAgent as HttpAgent0057 } from 'agui-client-0057'
import { HttpAgent as HttpAgent0058 } from 'agui-client-0058'
import { HttpAgent as HttpAgent0059 } from 'agui-client-0059'
import { HttpAgent as HttpAgent1 } from 'agui-client-1'

/** What a client has after a run. */
export interface Outcome {
  readonly messages: unknown[]
  readonly state: unknown
  readonly pendingInterrupts: unknown[]
  /** Everything the client complained about on the console. */
  readonly warnings: unknown[][]
  /** RUN_ERROR codes it was told. */
  readonly errors: (string | undefined)[]
}

/** A client to run a stream through. */
export interface Client {
  readonly version: string
  readonly profile: 'legacy' | 'v1'
  /** Feeds the events of one run to a client that starts with `messages` and `state`. @throws what the client throws at the stream */
  watch (lines: readonly string[], start?: { readonly messages?: unknown[], readonly state?: unknown }): Promise<Outcome>
}

type AnyAgent = typeof HttpAgent1

/** Every official client this project is checked against. */
export const clients: readonly Client[] = [
  client('0.0.57', 'legacy', HttpAgent0057 as unknown as AnyAgent),
  client('0.0.58', 'legacy', HttpAgent0058 as unknown as AnyAgent),
  client('0.0.59', 'legacy', HttpAgent0059 as unknown as AnyAgent),
  client('1.0.0', 'v1', HttpAgent1)
]

function client (version: string, profile: Client['profile'], Agent: AnyAgent): Client {
  return {
    version,
    profile,
    async watch (lines, start = {}) {
      const body = lines.map((line) => `data: ${line}\n\n`).join('')
      const agent = new Agent({
        url: 'http://localhost/agui/run',
        threadId: 'thread',
        initialMessages: structuredClone(start.messages ?? []) as never,
        initialState: structuredClone(start.state ?? {}) as never,
        fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
      })
      const warnings: unknown[][] = []
      const errors: (string | undefined)[] = []
      const { warn, error } = console
      console.warn = console.error = (...args: unknown[]) => { warnings.push(args) }
      try {
        await agent.runAgent({ runId: 'run' }, { onRunErrorEvent: ({ event }) => { errors.push(event.code) } })
      } finally {
        Object.assign(console, { warn, error })
      }
      return { messages: agent.messages, state: agent.state, pendingInterrupts: agent.pendingInterrupts, warnings, errors }
    }
  }
}
