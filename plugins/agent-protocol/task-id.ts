import { TaskError } from './errors.ts'

/** Fastify's router answers longer path segments itself; `.` and `..` would not survive a URL. */
const TASK_ID = /^(?!\.{1,2}$)[A-Za-z0-9._:~-]{1,100}$/

/** Whether a text can be the id of a task. */
export function isTaskId (text: string): boolean {
  return TASK_ID.test(text)
}

/** Reads the id that a submitter chose. @throws AGT_ERR_TASK_TASK_ID_REQUIRED, AGT_ERR_TASK_INVALID_TASK_ID */
export function readTaskId (value: unknown): string {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  if (text === undefined || text === null || (typeof text === 'string' && text.trim() === '')) throw new TaskError('task_id_required', 'task_id is required')
  if (typeof text !== 'string' || !isTaskId(text)) throw new TaskError('invalid_task_id', 'task_id takes 1 to 100 of the characters A-Z a-z 0-9 . _ : ~ - and is neither . nor ..')
  return text
}
