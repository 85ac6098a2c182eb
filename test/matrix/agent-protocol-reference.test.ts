import { playMatrix } from './ownership.ts'
import { taskMatrix } from './task-matrix.ts'

playMatrix(taskMatrix('agent-protocol as the reference', '/ref', 'reference'))
