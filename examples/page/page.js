// A small AG-UI client. Read in this order:
//   conversation.js  what is known, and how each event changes it
//   connection.js    a run to its end: streaming, rejoining after a drop or a reload   (sse.js reads its bytes)
//   transcript.js    how it looks;  approvals.js  the dialogue;  page-tools.js  what agents may call here
//   this file        what the user does
import { askApprovals, isAsking } from './approvals.js'
import { askJson, backOff, followRun, Refusal } from './connection.js'
import { applyEvent, load, newConversation, newId, save } from './conversation.js'
import { colourOf, pageTools } from './page-tools.js'
import { setText, Transcript } from './transcript.js'

const SAVE_EVERY_MS = 300
const CONNECTION = { connecting: 'Connecting', open: 'Answering', lost: 'Connection lost. Trying again', ready: 'Ready' }

const byId = (id) => document.getElementById(id)
const ui = Object.fromEntries(['agent', 'new', 'scroller', 'welcome', 'suggestions', 'log', 'questions', 'questions-text', 'review', 'composer', 'text', 'send', 'stop', 'connection', 'tokens'].map((id) => [id, byId(id)]))
const transcript = new Transcript(ui.log, { pick: answerPageCall, askAgain })

let conversation = load() ?? newConversation()
let agents = []
/** Ends the following of a run, not the run. */
let following = new AbortController()
let connection = 'connecting'

// --- What the user does ---

ui.composer.addEventListener('submit', (event) => {
  event.preventDefault()
  const text = ui.text.value.trim()
  if (text !== '' && isFree()) ask(text)
})

ui.text.addEventListener('keydown', (event) => {
  // Not while an input method composes a character: its Enter chooses.
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  ui.composer.requestSubmit()
})

ui.text.addEventListener('input', fitText)
ui.stop.addEventListener('click', stop)
ui.review.addEventListener('click', review)
ui.agent.addEventListener('change', () => {
  conversation.agentId = ui.agent.value
  changed()
})

ui.new.addEventListener('click', async () => {
  if (conversation.run !== undefined) await stop()
  following.abort()
  conversation = newConversation(conversation.agentId)
  connection = 'ready'
  changed()
  ui.text.focus()
})

/** Sends what the user wrote. */
function ask (text) {
  // A call that the page was to answer must not stay open in the transcript: models refuse those.
  for (const toolCallId of conversation.pageCalls) conversation.messages.push({ id: newId(), role: 'tool', toolCallId, content: '', error: 'The user went on without answering.' })
  conversation.messages.push({ id: newId(), role: 'user', content: text })
  ui.text.value = ''
  fitText()
  start()
  scrollDown()
}

/** Sends the last question again, without what came of it. */
function askAgain () {
  const last = conversation.messages.findLastIndex(({ role }) => role === 'user')
  if (last === -1 || !isFree()) return
  conversation.messages = conversation.messages.slice(0, last + 1)
  start()
  ui.text.focus()
}

/** Answers a call of the page's own tool: the result is a message, and the next run reads it. */
function answerPageCall (toolCallId, content) {
  conversation.messages.push({ id: newId(), role: 'tool', toolCallId, content })
  start()
  ui.text.focus()
}

/** Asks for all approvals at once; the answers start the next run. */
async function review () {
  if (isAsking() || conversation.interrupts.length === 0) return
  const resume = await askApprovals(conversation.interrupts)
  if (resume === undefined) return
  start(resume)
  ui.text.focus()
}

/** Stops the run itself, on the server; its stream then ends by itself. */
async function stop () {
  const { threadId, runId } = conversation.run ?? {}
  if (threadId === undefined) return
  try {
    await askJson(`/agui/stop/${encodeURIComponent(threadId)}`, { runId })
    ui.text.focus()
  } catch (error) {
    following.abort()
    end({ tone: 'error', text: error instanceof Refusal ? error.message : 'The server cannot be reached. This page no longer waits for it.', canRetry: true })
  }
}

// --- Runs ---

/** Starts a run with the transcript as it stands. */
function start (resume) {
  const { threadId, agentId, messages } = conversation
  const runId = newId()
  const request = { threadId, runId, protocolVersion: '1.0', messages, tools: pageTools, context: [], state: {}, forwardedProps: {}, ...resume !== undefined && { resume } }
  conversation.note = undefined
  conversation.pageCalls = []
  follow({ threadId, runId, agentId, request: structuredClone(request) })
}

/** Looks at the thread as the server has it: what runs, what is open. */
function rejoin () {
  const { threadId, agentId } = conversation
  return follow({ threadId, agentId })
}

/** Follows a run to its end, and does what its end asks for. */
async function follow (run) {
  following.abort()
  following = new AbortController()
  const { signal } = following
  const isNew = run.request !== undefined
  conversation.run = run
  changed()
  try {
    for await (const { event, id } of followRun(run, { signal, onConnection })) {
      applyEvent(conversation, event, id)
      changed()
    }
  } catch (error) {
    // Somebody else follows now, or nobody wants to.
    if (signal.aborted) return
    end({ tone: 'error', text: error.message, canRetry: true })
    if (!(error instanceof Refusal)) throw error
    return
  }
  onConnection('ready')
  if (isNew && conversation.note?.isRefused) return await lookAgain()
  if (conversation.interrupts.length > 0) review()
}

/** A run was refused: the server sees the thread otherwise than we do (ag-ui 20.5, 21). Its view replaces ours, and what was refused goes back to where it was written. */
function lookAgain () {
  const refused = conversation.messages.at(-1)
  if (refused.role === 'user' && ui.text.value === '') ui.text.value = refused.content
  return rejoin()
}

function end (note) {
  conversation.run = undefined
  conversation.open = []
  conversation.note = note
  onConnection('ready')
}

function onConnection (state) {
  connection = state
  changed()
}

function isFree () {
  return conversation.run === undefined && conversation.interrupts.length === 0
}

// --- What the user sees ---

let drawing
let saving

/** To be called after each change: shows it with the next frame, and saves it soon. */
function changed () {
  drawing ??= requestAnimationFrame(draw)
  saving ??= setTimeout(saveNow, SAVE_EVERY_MS)
}

function saveNow () {
  clearTimeout(saving)
  saving = undefined
  save(conversation)
}

// A reload finds what was on the screen.
window.addEventListener('pagehide', saveNow)

function draw () {
  drawing = undefined
  const { messages, run, interrupts, usage } = conversation
  const isFollowed = isAtBottom()
  document.documentElement.dataset.colour = colourOf(conversation)
  ui.welcome.hidden = messages.length > 0
  // A screen reader waits for the whole answer instead of reading it word by word.
  ui.log.setAttribute('aria-busy', String(run !== undefined))
  transcript.show(conversation)

  ui.agent.value = conversation.agentId
  ui.agent.disabled = agents.length === 0 || !isFree()
  ui.questions.hidden = interrupts.length === 0 || run !== undefined
  setText(ui['questions-text'], interrupts.length === 1 ? 'A call waits for your approval.' : `${interrupts.length} calls wait for your approval.`)
  ui.send.hidden = run !== undefined
  ui.send.disabled = !isFree()
  ui.stop.hidden = run === undefined
  ui.connection.dataset.state = connection
  setText(ui.connection, connection === 'ready' && interrupts.length > 0 ? 'Waiting for you' : CONNECTION[connection])
  const total = Object.values(usage).reduce((sum, { input, output }) => ({ input: sum.input + input, output: sum.output + output }), { input: 0, output: 0 })
  setText(ui.tokens, total.input + total.output === 0 ? '' : `${total.input} tokens in, ${total.output} out`)
  // Last, when everything has the size it will have.
  if (isFollowed) scrollDown()
}

function isAtBottom () {
  const { scrollHeight, scrollTop, clientHeight } = ui.scroller
  return scrollHeight - scrollTop - clientHeight < 80
}

function scrollDown () {
  ui.scroller.scrollTop = ui.scroller.scrollHeight
}

/** Grows the field with its text, up to what page.css allows. */
function fitText () {
  ui.text.style.height = 'auto'
  ui.text.style.height = `${ui.text.scrollHeight + 2}px`
}

/** Offers the agents, and what to try with them. */
function showAgents () {
  ui.agent.replaceChildren(...agents.map(({ id, description = '' }) => {
    const option = document.createElement('option')
    option.value = option.textContent = id
    option.title = description
    return option
  }))
  ui.suggestions.replaceChildren(...agents.flatMap(({ id, suggestions }) => suggestions.map(({ title, text }) => {
    const item = document.createElement('li')
    const button = document.createElement('button')
    button.type = 'button'
    button.append(...[['strong', title], ['span', text], ['small', id]].map(([name, content]) => {
      const part = document.createElement(name)
      part.textContent = content
      return part
    }))
    button.addEventListener('click', () => {
      if (!isFree()) return
      conversation.agentId = id
      ask(text)
      ui.text.focus()
    })
    item.append(button)
    return item
  })))
}

/** Asks for the agents until the server says. */
async function loadAgents () {
  for (let failures = 1; ; failures++) {
    try {
      return (await askJson('/page/agents')).agents
    } catch (error) {
      if (error instanceof Refusal) throw error
      onConnection('lost')
      await backOff(failures, new AbortController().signal)
    }
  }
}

changed()
try {
  agents = await loadAgents()
  if (!agents.some(({ id }) => id === conversation.agentId)) conversation.agentId = agents[0]?.id
  showAgents()
  onConnection('ready')
  // A run that was being followed goes on; a question may have been answered elsewhere, so the server is asked.
  if (conversation.run !== undefined) follow(conversation.run)
  else if (conversation.interrupts.length > 0) rejoin()
  else ui.text.focus()
} catch (error) {
  end({ tone: 'error', text: error.message })
}
