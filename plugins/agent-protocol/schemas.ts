import { Type } from '@sinclair/typebox'
import { TASK_STATUSES } from './wire.ts'

const open = { additionalProperties: true }
const text = Type.String()
const maybe = Type.Optional(text)
const count = Type.Optional(Type.Integer())
const flag = Type.Optional(Type.Boolean())

/** What a task is reported as. */
export const Status = Type.Union(TASK_STATUSES.map((status) => Type.Literal(status)))

/** Body of every answer that is no success; more members stand beside these. */
export const ErrorBody = Type.Object({ error: text, code: maybe, task_id: maybe }, open)

/** Path of a task's routes. */
export const TaskParams = Type.Object({ taskId: text })

const PendingCall = Type.Object({ toolCallId: text, toolName: text, toolInputJson: text })

const pending = {
  pending_confirms: Type.Optional(Type.Array(PendingCall)),
  pending_external: Type.Optional(Type.Array(PendingCall)),
  pending_inputs: Type.Optional(Type.Array(Type.Object({}, open))),
  confirm_id: Type.Optional(Type.String({ description: 'Names this pause; a resume that brings it is refused once the task has moved on.' }))
}

const outcome = {
  result: maybe, structured_result: Type.Optional(Type.Unknown()), stop_reason: maybe, error: maybe, code: maybe
}

/** A task as it stands. */
export const Snapshot = Type.Object({
  task_id: text,
  status: Status,
  ...outcome,
  ...pending,
  agent_id: maybe,
  session_id: maybe,
  user_id: maybe,
  parent_session_id: maybe,
  created_at: maybe,
  updated_at: maybe,
  finished_at: maybe,
  run_count: count,
  cancel_requested: flag,
  oldest_seq: count,
  last_seq: count,
  stream_epoch: maybe,
  usage: Type.Optional(Type.Object({}, open))
}, open)

/** Body of a submission. Documented here, read by `parseSubmission`. */
export const SubmitBody = Type.Object({
  task_id: Type.String({ description: 'Chosen by the caller: 1 to 100 of A-Z a-z 0-9 . _ : ~ -' }),
  agent_id: maybe,
  input: maybe,
  context: Type.Optional(Type.Object({
    user_id: maybe,
    parent_session_id: maybe,
    session_id: Type.Optional(Type.String({ description: 'Conversation that tasks share. Default: the task alone.' })),
    stream: flag,
    detail: Type.Optional(Type.String({ description: 'status, full or verbose; anything else counts as status.' })),
    payload: Type.Optional(Type.Boolean({ description: 'false leaves the agents\' events out of the stream\'s events.' })),
    deny_rules: Type.Optional(Type.Array(Type.Object({ tool_name: text, rule_content: maybe, behavior: text, source: maybe }, open))),
    attributes: Type.Optional(Type.Object({}, open))
  }, open))
}, open)

/** Answer to a submission. */
export const SubmitAnswer = Type.Object({ task_id: text, status: Status, duplicate: flag })

/** Answer to a wait: how the task ended or what it asks for, or that the time was up. */
export const WaitAnswer = Type.Object({ task_id: maybe, status: Status, ...outcome, ...pending, timed_out: flag, task_status: maybe }, open)

/** Answer to a cancel. */
export const CancelAnswer = Type.Object({ task_id: maybe, status: Type.Optional(Status), cancel_requested: flag, already_terminal: flag })

const Edited = Type.Object({}, { ...open, description: 'Replaces the arguments as a whole.' })

/** Body of a resume. Documented here, read by `parseAnswers`. */
export const ResumeBody = Type.Object({
  decisions: Type.Optional(Type.Array(Type.Object({ toolCallId: text, approved: Type.Boolean(), reason: maybe, editedArgs: Type.Optional(Edited) }, open))),
  results: Type.Optional(Type.Array(Type.Object({ toolCallId: text, output: Type.Unknown(), state: maybe }, open))),
  inputs: Type.Optional(Type.Array(Type.Object({ id: text, status: maybe, payload: Type.Optional(Type.Unknown()) }, open))),
  confirm_id: maybe
}, open)

const ids = Type.Array(text)

/** Answer to a resume. */
export const ResumeAnswer = Type.Object({ task_id: text, status: Status, approved: ids, denied: ids, unknown_decisions: ids })

/** A page of tasks. */
export const TaskList = Type.Object({ tasks: Type.Array(Snapshot), next_cursor: maybe })

/** Agents that tasks can be given to. */
export const AgentList = Type.Object({ agents: Type.Array(Type.Object({ agent_id: text, name: text, description: maybe })) })

/** A file of a task. */
export const ArtifactBody = Type.Object({
  artifact_id: text, path: text, size: Type.Integer(), sha256: text, mime: text, agent_created: Type.Boolean(), created_at: text
})

/** A page of a task's files. */
export const ArtifactList = Type.Object({ artifacts: Type.Array(ArtifactBody), next_cursor: maybe })

/** Path of an artifact. */
export const ArtifactParams = Type.Object({ taskId: text, artifactId: text })

/** Query of a listing of artifacts. */
export const ArtifactQuery = Type.Object({ limit: maybe, cursor: maybe })

/** Query of a listing. */
export const ListQuery = Type.Object({ status: maybe, agent_id: maybe, session_id: maybe, limit: maybe, cursor: maybe })

/** Query of a wait. */
export const WaitQuery = Type.Object({ timeout_seconds: Type.Optional(Type.String({ description: 'Whole seconds; 0 answers at once.' })) })

/** Query of an event stream. */
export const EventsQuery = Type.Object({
  from_seq: Type.Optional(Type.String({ description: 'The last sequence that the reader has; Last-Event-ID means the same.' })),
  detail: Type.Optional(Type.String({ description: 'Narrows the submitter\'s detail; each event then names its predecessor in prevSeq.' })),
  payload: Type.Optional(Type.String({ description: '0 leaves the agents\' events out.' })),
  gap: Type.Optional(Type.String({ description: 'fail: answer 410 where events are missing, instead of a STREAM_GAP event.' }))
})

/** What an event stream is. */
export const EventStream = Type.String({ description: 'Server-sent events: one task event a frame, `id` its sequence, ended by STATUS or RUN_ERROR.' })
