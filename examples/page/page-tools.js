// Tools that run in this page. An agent sees them beside its own; a call of one ends the run, and its result starts the next.

/** The colours this page can have; page.css says how each looks in light and in dark. */
export const COLOURS = ['teal', 'blue', 'violet', 'rose', 'orange', 'green']

const PICK_COLOUR = 'pick_colour'

/** What is sent along with every run. */
export const pageTools = [{
  name: PICK_COLOUR,
  description: 'Asks the user for a colour, paints the page with it, and returns its name.',
  parameters: {
    type: 'object',
    properties: { question: { type: 'string', description: 'What to ask the user.' } },
    required: ['question']
  }
}]

/** Whether a call is one that this page offers choices for. */
export function isColourCall (call) {
  return call.function.name === PICK_COLOUR
}

/** The colour that was picked last, which is the one the page has: it follows from the transcript alone, so it survives a reload. */
export function colourOf ({ messages }) {
  const calls = new Set(messages.flatMap(({ toolCalls = [] }) => toolCalls.filter(isColourCall).map(({ id }) => id)))
  return messages.findLast(({ role, toolCallId, content }) => role === 'tool' && calls.has(toolCallId) && COLOURS.includes(content))?.content ?? COLOURS[0]
}
