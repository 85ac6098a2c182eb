import { type Agent, AgentError, type AgentEventInit, type AgentInput, type Decision, pendingOf, resolveDecisions, type RuntimeContext } from '../../lib/agent/index.ts'

/**
 * The agent for servers on which nobody answers: whatever it asks for is refused and it goes on, for at most `maxRounds` times, then
 * the task fails (agent-protocol 7.4). Its requests are not told.
 */
export function autoDenied (agent: Agent, maxRounds: number): Agent {
  return {
    name: agent.name,
    ...agent.description !== undefined && { description: agent.description },
    ...agent.capabilities !== undefined && { capabilities: agent.capabilities },
    stream: (input, context) => answered(agent, maxRounds, input, context),
    close: () => agent.close?.()
  }
}

async function * answered (agent: Agent, maxRounds: number, first: AgentInput, context: RuntimeContext): AsyncGenerator<AgentEventInit, void, undefined> {
  let input = first
  for (let round = 0; round <= maxRounds; round++) {
    const asked: AgentEventInit[] = []
    const ends: AgentEventInit[] = []
    for await (const event of agent.stream(input, context)) {
      const isOwn = event.source === undefined
      if (isOwn && isAsk(event)) asked.push(event)
      // The end is the last round's.
      else if (isOwn && (event.type === 'AGENT_RESULT' || event.type === 'AGENT_END')) ends.push(event)
      else if (!isOwn || event.type !== 'AGENT_START' || round === 0) yield event
    }
    const decisions = refusals(asked)
    if (decisions.length === 0) return yield * ends
    input = { ...first, messages: [], history: 'append', resume: decisions }
  }
  throw new AgentError({ code: 'confirmation_required', message: 'the agent asks for confirmations, and this server takes none', expose: true })
}

function refusals (asked: readonly AgentEventInit[]): Decision[] {
  const resolved = resolveDecisions(pendingOf(asked), [], { onMissing: 'deny' })
  return resolved.kind === 'resolved' ? [...resolved.decisions] : []
}

function isAsk ({ type }: AgentEventInit): boolean {
  return type === 'REQUIRE_USER_CONFIRM' || type === 'REQUIRE_EXTERNAL_EXECUTION' || type === 'REQUIRE_INPUT'
}
