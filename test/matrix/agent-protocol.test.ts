import { playMatrix } from './ownership.ts'
import { taskMatrix } from './task-matrix.ts'

playMatrix(taskMatrix('agent-protocol', ''))
