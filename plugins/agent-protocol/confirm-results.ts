import { type Agent, type AgentEventInit, type AgentEventInitOf, type AgentInput, type Decision, type RuntimeContext } from '../../lib/agent/index.ts'

/**
 * The agent, whose first word after its start is what was decided, as the reference's streams have it (agent-protocol 7.2). What it says
 * about that itself is left out: once is enough.
 */
export function tellingDecisions (agent: Agent, decisions: readonly Decision[]): Agent {
  const confirmResults = decisions.flatMap((decision): AgentEventInitOf<'USER_CONFIRM_RESULT'>['confirmResults'] => {
    if (decision.kind !== 'confirm' || decision.toolCall === undefined) return []
    const { approved, toolCall, rules, reason } = decision
    return [{ confirmed: approved, toolCall, ...rules !== undefined && { rules }, ...reason !== undefined && { reason } }]
  })
  if (confirmResults.length === 0) return agent
  return {
    name: agent.name,
    ...agent.description !== undefined && { description: agent.description },
    ...agent.capabilities !== undefined && { capabilities: agent.capabilities },
    stream: (input, context) => told(agent, { type: 'USER_CONFIRM_RESULT', confirmResults }, input, context),
    close: () => agent.close?.()
  }
}

async function * told (agent: Agent, results: AgentEventInit, input: AgentInput, context: RuntimeContext): AsyncGenerator<AgentEventInit, void, undefined> {
  let isTold = false
  for await (const event of agent.stream(input, context)) {
    const isStart = event.type === 'AGENT_START' && event.source === undefined
    if (event.type === results.type && event.source === undefined) continue
    if (isStart && !isTold) yield event
    if (!isTold) yield results
    if (!isStart || isTold) yield event
    isTold = true
  }
}
