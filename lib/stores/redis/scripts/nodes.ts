import { Script } from '../script.ts'
import { CLOCK } from './clock.ts'

/**
 * KEYS nodes of a protocol, runs bound to one of them. ARGV 2 node, 3 run. A node that is new is due at once. Answers the two runs that were
 * looked at longest ago, with their scores: what is bound pays for what has gone.
 */
export const BIND = new Script(CLOCK, `
redis.call('ZADD',KEYS[1],'NX',0,ARGV[2])
redis.call('ZADD',KEYS[2],clock(),ARGV[3])
return redis.call('ZRANGE',KEYS[2],0,1,'WITHSCORES')`)

/** KEYS record. ARGV node. The binding is a fact of the run and goes with it. */
export const BIND_RUN = new Script(`
if redis.call('EXISTS',KEYS[1])==0 then return 0 end
redis.call('HSET',KEYS[1],'b',ARGV[1])
return 1`)

/** KEYS record. ARGV node. */
export const UNBIND_RUN = new Script(`
if redis.call('HGET',KEYS[1],'b')==ARGV[1] then redis.call('HDEL',KEYS[1],'b') end`)

/** KEYS as for a binding. ARGV node. Forgets a node to which nothing is bound any more. */
export const FORGET = new Script(`
if redis.call('ZCARD',KEYS[2])==0 then redis.call('ZREM',KEYS[1],ARGV[1]) end`)

/** KEYS record, presence. ARGV 2 node, 3 milliseconds. Presence goes with its run. */
export const ENTER_RUN = new Script(CLOCK, `
local at,now=redis.call('PEXPIRETIME',KEYS[1]),clock()
if at==-2 then return end
redis.call('ZREMRANGEBYSCORE',KEYS[2],'-inf',now)
redis.call('ZADD',KEYS[2],now+ARGV[3],ARGV[2])
if at>0 then redis.call('PEXPIREAT',KEYS[2],at) end`)

/** KEYS presence. The nodes that are there now. */
export const PRESENT = new Script(CLOCK, `
return redis.call('ZRANGE',KEYS[1],'('..string.format('%.0f',clock()),'+inf','BYSCORE')`)
