import { type InterruptProblem } from '../../lib/runs/index.ts'

/** What a client did wrong with its thread's open interrupts (ag-ui 20.5), naming their ids. */
export function contractMessage (problem: InterruptProblem): string {
  const open = problem.open.map(({ id }) => id)
  switch (problem.kind) {
    case 'none-open': return `The thread has no open interrupt that resume could answer: ${list(problem.ids)}.`
    case 'unanswered': return `The thread has unresolved interrupts, and this run answers none of them: ${list(open)}.`
    case 'mismatch': return `resume must answer exactly the thread's open interrupts. Missing: ${list(problem.missing)}. Unknown: ${list(problem.ids)}.`
    case 'duplicate': return `resume answers an interrupt more than once: ${list(problem.ids)}.`
    case 'expired': return `The interrupt has expired and can only be cancelled: ${list(problem.ids)}.`
    case 'taken': return `The interrupt is being answered by another run: ${list(problem.ids)}.`
  }
}

function list (ids: readonly string[]): string {
  return ids.length === 0 ? 'none' : ids.join(', ')
}
