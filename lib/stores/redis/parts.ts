import type { Connection } from './connection.ts'
import type { IndexSet } from './index-set.ts'
import type { Keys } from './keys.ts'
import type { ResolvedRedisOptions } from './options.ts'
import type { Owned } from './owned.ts'

/** What the ports of one Redis store share. */
export interface RedisParts {
  readonly connection: Connection
  readonly keys: Keys
  readonly owned: Owned
  readonly indexSet: IndexSet
  readonly options: ResolvedRedisOptions
}
