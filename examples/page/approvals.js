// Asks for the answers to everything an agent waits for, in one dialogue: the protocol takes them together or not at all.
import { copyOf, setText } from './transcript.js'

const dialog = document.getElementById('approvals')
const form = document.getElementById('approvals-form')
const list = document.getElementById('approvals-list')
const problem = document.getElementById('approvals-problem')

/**
 * Shows the open interrupts and resolves with one `resume` entry for each, or with undefined when the user wants to think about it.
 * The dialogue is modal: focus goes to its title and stays inside, Escape closes it, and focus returns to where it was.
 */
export function askApprovals (interrupts) {
  const questions = interrupts.map(makeQuestion)
  setText(document.getElementById('approvals-title'), interrupts.length === 1 ? 'The agent asks for your approval' : `The agent asks for ${interrupts.length} approvals`)
  form.dataset.count = interrupts.length === 1 ? 'one' : 'several'
  setText(problem, '')
  list.replaceChildren(...questions.map(({ element }) => element))
  dialog.showModal()

  return new Promise((resolve) => {
    const listeners = new AbortController()
    const { signal } = listeners
    let answers
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      // Deny and Approve answer the only question; with several, each has its own choice.
      const all = event.submitter?.name === 'all' ? event.submitter.value : undefined
      const wrong = questions.find((question) => !question.check(all))
      if (wrong !== undefined) return wrong.focus()
      answers = questions.map((question) => question.answer(all))
      dialog.close()
    }, { signal })
    document.getElementById('approvals-later').addEventListener('click', () => dialog.close(), { signal })
    dialog.addEventListener('close', () => {
      listeners.abort()
      resolve(answers)
    }, { signal })
  })
}

/** Whether the dialogue is on the screen. */
export function isAsking () {
  return dialog.open
}

/** One interrupt as a part of the form: what is asked, the arguments to edit, a choice and a reason. */
function makeQuestion (interrupt, index) {
  const element = copyOf('approval-template')
  const { id, message = '', expiresAt, metadata = {}, responseSchema } = interrupt
  const given = argumentsOf(metadata)
  const text = JSON.stringify(given, null, 2)
  const args = element.querySelector('.arguments textarea')
  const reason = element.querySelector('.reason input')
  const radios = [...element.querySelectorAll('.choice input')]
  const complaint = element.querySelector('.problem')
  // A schema that speaks of edited arguments takes them.
  const isEditable = responseSchema?.properties?.editedArgs !== undefined

  setText(element.querySelector('legend'), metadata.toolName ?? 'Question')
  setText(element.querySelector('.question'), message)
  complaint.id = `problem-${index}`
  args.value = text
  args.rows = Math.min(text.split('\n').length, 12)
  args.readOnly = !isEditable
  args.setAttribute('aria-describedby', complaint.id)
  for (const radio of radios) radio.name = `choice-${index}`
  args.addEventListener('input', () => complain(''))

  const choice = (all) => all ?? radios.find(({ checked }) => checked)?.value
  const complain = (sentence) => {
    setText(complaint, sentence)
    args.setAttribute('aria-invalid', String(sentence !== ''))
  }

  return {
    element,
    /** Whether this can be sent; says what is missing where it cannot. */
    check (all) {
      setText(problem, choice(all) === undefined ? 'Approve or deny each of them.' : '')
      if (choice(all) === undefined) return false
      const parsed = choice(all) === 'deny' ? { value: given } : parseArguments(args.value)
      complain(parsed.problem ?? '')
      return parsed.problem === undefined
    },
    focus () {
      if (complaint.textContent !== '') args.focus()
      else radios[0].focus()
    },
    answer (all) {
      // Nobody may decide any more what has run out of time.
      if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()) return { interruptId: id, status: 'cancelled' }
      if (choice(all) === 'deny') return { interruptId: id, status: 'resolved', payload: { approved: false, ...reason.value.trim() !== '' && { reason: reason.value.trim() } } }
      const { value } = parseArguments(args.value)
      const isEdited = JSON.stringify(value) !== JSON.stringify(given)
      return { interruptId: id, status: 'resolved', payload: { approved: true, ...isEdited && { editedArgs: value } } }
    }
  }
}

function argumentsOf ({ toolInput, toolContent = '{}' }) {
  return toolInput ?? JSON.parse(toolContent)
}

/** Edited arguments replace the agent's as a whole, so they must be an object too. */
function parseArguments (text) {
  try {
    const value = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value }
    return { problem: 'Arguments are a JSON object: { "name": "value" }.' }
  } catch (error) {
    return { problem: `This is no JSON: ${error.message}` }
  }
}
