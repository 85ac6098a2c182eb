import { memoryStore, type Store } from '../../lib/stores/index.ts'

/** A backend that end-to-end tests run on. */
export interface OpenableStore {
  readonly name: string
  /** A store with nothing in it; whoever opens it closes it. */
  open (): Promise<Store>
}

/** Every backend that can be opened here without a server of its own. */
export const openableStores: readonly OpenableStore[] = [
  { name: 'memory', open: async () => memoryStore() }
]
