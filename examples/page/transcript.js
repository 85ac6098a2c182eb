// Shows a conversation. Each call of `show()` brings the page to where the conversation stands; only what has changed is touched.
// Text is set as text, never as markup, and grows by appending, so that a screen reader hears what is new and a selection stays.
import { COLOURS, isColourCall } from './page-tools.js'

const LINE_LENGTH = 72
const STATES = {
  running: 'running',
  asking: 'needs your approval',
  page: 'waits for you',
  done: 'done',
  error: 'failed',
  denied: 'denied',
  interrupted: 'interrupted',
  unanswered: 'not answered'
}

export class Transcript {
  #log
  #actions
  #shown = new Map()

  /** @param {HTMLElement} log @param {{ pick: (callId: string, colour: string) => void, askAgain: () => void }} actions */
  constructor (log, actions) {
    this.#log = log
    this.#actions = actions
  }

  show (conversation) {
    const items = itemsOf(conversation)
    const keys = new Set(items.map(({ key }) => key))
    for (const [key, { element }] of this.#shown) {
      if (keys.has(key)) continue
      element.remove()
      this.#shown.delete(key)
    }
    items.forEach((item, index) => {
      let view = this.#shown.get(item.key)
      if (view === undefined) this.#shown.set(item.key, view = this.#create(item))
      // Before it is in the page where it is new: it is announced with its text then.
      view.update(item)
      if (this.#log.children[index] !== view.element) this.#log.insertBefore(view.element, this.#log.children[index] ?? null)
    })
  }

  #create (item) {
    const element = copyOf(`${item.kind}-template`)
    switch (item.kind) {
      case 'user':
      case 'assistant': {
        const text = element.querySelector('.text')
        return { element, update: (item) => setText(text, item.text) }
      }
      case 'reasoning': {
        const text = element.querySelector('.text')
        const summary = element.querySelector('summary')
        return {
          element,
          update: (item) => {
            setText(text, item.text)
            setText(summary, item.isOpen ? 'Thinking…' : 'Thoughts')
          }
        }
      }
      case 'tool': return { element, update: this.#toolView(element) }
      case 'note': {
        const again = element.querySelector('button')
        again.addEventListener('click', () => this.#actions.askAgain())
        const text = element.querySelector('.text')
        return {
          element,
          update: (item) => {
            element.dataset.tone = item.tone
            again.hidden = item.canRetry !== true
            setText(text, item.text)
          }
        }
      }
      default: return { element, update: () => {} }
    }
  }

  #toolView (element) {
    const name = element.querySelector('.name')
    const state = element.querySelector('.state')
    const parts = { arguments: element.querySelector('.arguments'), result: element.querySelector('.result'), action: element.querySelector('.action') }
    return (item) => {
      element.dataset.state = item.state
      setText(name, item.call.function.name)
      setText(state, STATES[item.state])
      setText(parts.arguments.querySelector('h3'), item.edited === undefined ? 'Arguments' : 'Edited by you')
      const args = readable(item.edited === undefined ? item.call.function.arguments : JSON.stringify(item.edited))
      parts.arguments.hidden = args === '' || args === '{}'
      setText(parts.arguments.querySelector('pre'), args)
      parts.result.hidden = item.result === undefined
      setText(parts.result.querySelector('pre'), item.result ?? '')
      const isOffered = item.state === 'page' && isColourCall(item.call)
      parts.action.hidden = !isOffered
      if (!isOffered) parts.action.replaceChildren()
      else if (parts.action.childElementCount === 0) parts.action.append(...this.#swatches(item.call.id))
    }
  }

  #swatches (callId) {
    return COLOURS.map((colour) => {
      const button = document.createElement('button')
      button.type = 'button'
      button.className = 'swatch'
      button.dataset.colour = colour
      button.textContent = colour
      button.addEventListener('click', () => this.#actions.pick(callId, colour))
      return button
    })
  }
}

/** Shows a text in an element by appending what is new, where it only grew. */
export function setText (element, text) {
  const node = element.firstChild
  if (node === null) {
    if (text !== '') element.append(text)
  } else if (node.data !== text) {
    if (text.startsWith(node.data)) node.appendData(text.slice(node.length))
    else node.data = text
  }
}

/** A copy of the one element in a template. */
export function copyOf (templateId) {
  return document.getElementById(templateId).content.firstElementChild.cloneNode(true)
}

/** What stands in the transcript, in its order: a tool's result is part of its call. */
function itemsOf (conversation) {
  const { messages, run, note, open } = conversation
  const results = new Map(messages.filter(({ role }) => role === 'tool').map((message) => [message.toolCallId, message]))
  const items = messages.flatMap((message) => {
    const text = textOf(message.content)
    switch (message.role) {
      case 'user': return [{ key: message.id, kind: 'user', text }]
      case 'reasoning': return [{ key: message.id, kind: 'reasoning', text, isOpen: open.includes(message.id) }]
      case 'assistant': {
        const calls = message.toolCalls ?? []
        return [
          ...text === '' ? [] : [{ key: message.id, kind: 'assistant', text }],
          ...calls.map((call) => toolItem(call, results.get(call.id), conversation))
        ]
      }
      default: return []
    }
  })
  if (run !== undefined && !open.some((id) => items.at(-1)?.key === id)) items.push({ key: 'working', kind: 'working' })
  if (note !== undefined) items.push({ key: `note ${note.tone}`, kind: 'note', ...note })
  return items
}

function toolItem (call, result, { run, interrupts, pageCalls }) {
  const told = result?.metadata?.['agentscope.toolState']?.toLowerCase()
  const state = result !== undefined
    ? told ?? (result.error === undefined ? 'done' : 'error')
    : pageCalls.includes(call.id)
      ? 'page'
      : run !== undefined
        ? 'running'
        : interrupts.some(({ toolCallId }) => toolCallId === call.id) ? 'asking' : 'unanswered'
  return {
    key: `call ${call.id}`,
    kind: 'tool',
    call,
    state,
    result: result === undefined ? undefined : textOf(result.content) || result.error || '(nothing)',
    edited: result?.metadata?.['agentscope.editedArgs']
  }
}

/** A message's text; what is no text is named by its kind. */
function textOf (content = '') {
  return typeof content === 'string' ? content : content.map((part) => part.type === 'text' ? part.text : `[${part.type}]`).join('\n')
}

/** Arguments as they are read best: a short object in one line. While they stream in they are no JSON yet. */
function readable (text) {
  try {
    const lines = JSON.stringify(JSON.parse(text), null, 2)
    return lines.length > LINE_LENGTH ? lines : lines.replace(/\n */g, ' ')
  } catch {
    return text
  }
}
