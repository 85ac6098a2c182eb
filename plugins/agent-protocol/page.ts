import { type FastifyRequest } from 'fastify'
import { TaskError } from './errors.ts'
import { queryOf } from './scope.ts'

/** A page by its number, from 1 on. */
export interface Page {
  readonly current: number
  readonly size: number
}

const MAX_SIZE = 1_000

/** Reads `current_page` and `page_size`. @throws AGT_ERR_TASK_INVALID_QUERY with 422, as this protocol has it */
export function readPage (request: FastifyRequest): Page {
  return { current: readCount(request, 'current_page', 1, Number.MAX_SAFE_INTEGER), size: readCount(request, 'page_size', 10, MAX_SIZE) }
}

/** The items of a page; one past the end has none. */
export function pageOf<T> (items: readonly T[], { current, size }: Page): readonly T[] {
  return items.slice((current - 1) * size, current * size)
}

/** What a listing says of its pages. */
export function paginationOf (total: number, { current, size }: Page): { readonly total_items: number, readonly total_pages: number, readonly current_page: number, readonly page_size: number } {
  return { total_items: total, total_pages: Math.ceil(total / size), current_page: current, page_size: size }
}

function readCount (request: FastifyRequest, name: string, fallback: number, max: number): number {
  const text = queryOf(request, name)
  if (text === undefined) return fallback
  const count = /^\d{1,15}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= max) return count
  const error = new TaskError('invalid_query', `${name} is a whole number from 1 to ${max}`)
  error.statusCode = 422
  throw error
}
