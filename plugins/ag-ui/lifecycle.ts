import { type MappingConfig } from './config.ts'
import { type AgUiEventOf } from './event-schemas.ts'
import { type Profile, resolveProfile } from './input.ts'
import { getTextContent } from './messages.ts'
import { type ContentPart, type Message, type NormalisedInput } from './schemas.ts'

/** The protocol version this plugin speaks; never the caller's (section 1, decision 3). */
export const PROTOCOL_VERSION = '1.0'

/** The first event of a run, with the request repeated as the options say (section 3.6). */
export function runStarted (input: NormalisedInput, config: MappingConfig, profile: Profile = resolveProfile(input.protocolVersion, config.profile).profile): AgUiEventOf<'RUN_STARTED'> {
  const echoed = typeof config.echoInput === 'function' ? config.echoInput(input) : config.echoInput ? input : undefined
  return {
    type: 'RUN_STARTED',
    threadId: input.threadId,
    runId: input.runId,
    protocolVersion: PROTOCOL_VERSION,
    ...input.parentRunId !== undefined && { parentRunId: input.parentRunId },
    ...echoed !== undefined && { input: profile === 'legacy' ? legacyEcho(echoed) : echoed }
  }
}

/** Brings an echo into the shape clients before 1.0 accept: they throw on file handles and on tool messages made of parts (section 8). */
function legacyEcho (input: NormalisedInput): NormalisedInput {
  return { ...input, messages: input.messages.map(legacyMessage) }
}

/** A message as clients before 1.0 accept it. */
export function legacyMessage (message: Message): Message {
  if (message.role === 'tool' && typeof message.content !== 'string') return { ...message, content: getTextContent(message) }
  if (message.role === 'user' && typeof message.content !== 'string' && message.content.some(isHandle)) {
    return { ...message, content: message.content.map((part): ContentPart => isHandle(part) ? { type: 'text', text: `[${part.type}]` } : part) }
  }
  return message
}

function isHandle (part: ContentPart): boolean {
  return part.type !== 'text' && part.source.type === 'file'
}
