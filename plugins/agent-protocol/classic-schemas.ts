import { Type } from '@sinclair/typebox'

const open = { additionalProperties: true }
const text = Type.String()
const textOrNull = Type.Union([text, Type.Null()])
const anything = Type.Object({}, open)

/** Body of every answer that is no success. */
export const ClassicErrorBody = Type.Object({ message: text, error: Type.Optional(text), code: Type.Optional(text) }, open)

/** Body of a new task. */
export const ClassicTaskRequest = Type.Object({ input: Type.Optional(textOrNull), additional_input: Type.Optional(anything) }, open)

/** Body of a step; it may be absent. An agent that waits is answered by `additional_input.decisions`. */
export const ClassicStepRequest = ClassicTaskRequest

/** A file of a task. */
export const ClassicArtifactBody = Type.Object({
  artifact_id: text, agent_created: Type.Boolean(), file_name: text, relative_path: textOrNull, created_at: text, modified_at: text
})

/** A task. */
export const ClassicTaskBody = Type.Object({ task_id: text, input: textOrNull, additional_input: anything, artifacts: Type.Array(ClassicArtifactBody) })

/** A step. */
export const ClassicStepBody = Type.Object({
  task_id: text,
  step_id: text,
  name: textOrNull,
  status: Type.Union([Type.Literal('created'), Type.Literal('running'), Type.Literal('completed')]),
  input: textOrNull,
  additional_input: anything,
  output: textOrNull,
  additional_output: anything,
  artifacts: Type.Array(ClassicArtifactBody),
  is_last: Type.Boolean()
})

/** Where a page stands among the others. */
export const ClassicPagination = Type.Object({ total_items: Type.Integer(), total_pages: Type.Integer(), current_page: Type.Integer(), page_size: Type.Integer() })

export const ClassicTaskList = Type.Object({ tasks: Type.Array(ClassicTaskBody), pagination: ClassicPagination })
export const ClassicStepList = Type.Object({ steps: Type.Array(ClassicStepBody), pagination: ClassicPagination })
export const ClassicArtifactList = Type.Object({ artifacts: Type.Array(ClassicArtifactBody), pagination: ClassicPagination })

export const ClassicTaskParams = Type.Object({ task_id: text })
export const ClassicStepParams = Type.Object({ task_id: text, step_id: text })
export const ClassicArtifactParams = Type.Object({ task_id: text, artifact_id: text })
export const ClassicPageQuery = Type.Object({ current_page: Type.Optional(text), page_size: Type.Optional(text) })
