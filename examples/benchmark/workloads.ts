import { WORKLOAD_IDS, type WorkloadId } from './peer.ts'
import { type Workload } from './workload.ts'
import { w1, w1t } from './workloads/w1.ts'
import { w2 } from './workloads/w2.ts'
import { w3 } from './workloads/w3.ts'
import { w4 } from './workloads/w4.ts'
import { w5 } from './workloads/w5.ts'
import { w6 } from './workloads/w6.ts'

const WORKLOADS: Readonly<Record<WorkloadId, Workload>> = { W1: w1, W1t: w1t, W2: w2, W3: w3, W4: w4, W5: w5, W6: w6 }

/** The workload of that name, in any case. */
export function findWorkload (name: string): Workload {
  const id = WORKLOAD_IDS.find((candidate) => candidate.toLowerCase() === name.toLowerCase())
  if (id === undefined) throw new Error(`Unknown workload ${name}; there are: ${WORKLOAD_IDS.join(', ')} and micro.`)
  return WORKLOADS[id]
}
