import { Script } from '../script.ts'
import { CLOCK } from './clock.ts'

/**
 * KEYS order, expiry, data of one session's queue. ARGV 2 time to live of a parked ticket, 3 a ticket. What is not parked stands in \`expiry\`.
 *
 * \`pass\`: drops tickets that ran out, except the caller's own. \`keep\`: nothing of a queue outlives its tickets for long.
 */
const GATE = `
local order,expiry,data,now=KEYS[1],KEYS[2],KEYS[3],clock()
local function drop(id)
  redis.call('ZREM',order,id)
  redis.call('ZREM',expiry,id)
  redis.call('HDEL',data,id)
end
local function pass(own)
  for _,id in ipairs(redis.call('ZRANGE',expiry,'-inf',now,'BYSCORE')) do
    if id~=own then drop(id) end
  end
end
local function holder()
  local id=redis.call('ZRANGE',order,0,0)[1]
  if not id then return end
  return {id,redis.call('ZSCORE',expiry,id) and 0 or 1,redis.call('HGET',data,id)}
end
local function place(id,ms)
  if ms=='' then redis.call('ZREM',expiry,id) else redis.call('ZADD',expiry,now+ms,id) end
  local ttl=ARGV[2]
  if redis.call('ZCARD',order)==redis.call('ZCARD',expiry) then
    ttl=redis.call('ZRANGE',expiry,-1,-1,'WITHSCORES')[2]-now+3600000
  end
  for i=1,3 do redis.call('PEXPIRE',KEYS[i],ttl) end
  return {'in',redis.call('ZRANK',order,id),holder()}
end`

/** ARGV 4 milliseconds or empty to park, 5 data or empty, 6 limit or empty. */
export const ENTER = new Script(CLOCK, GATE, `
local id=ARGV[3]
pass(id)
if not redis.call('ZSCORE',order,id) then
  local last=redis.call('ZRANGE',order,-1,-1,'WITHSCORES')
  if last[1] and ARGV[6]~='' and redis.call('ZCARD',order)>=tonumber(ARGV[6]) then return {'full',holder()} end
  redis.call('ZADD',order,(last[2] or 0)+1,id)
end
if ARGV[5]=='' then redis.call('HDEL',data,id) else redis.call('HSET',data,id,ARGV[5]) end
return place(id,ARGV[4])`)

/** ARGV 4 milliseconds or empty to park. */
export const RENEW_TICKET = new Script(CLOCK, GATE, `
local id=ARGV[3]
if not redis.call('ZSCORE',order,id) then return {'out'} end
pass(id)
return place(id,ARGV[4])`)

/** The head after the ticket, which may be empty, has left. */
export const LEAVE = new Script(CLOCK, GATE, `
if ARGV[3]~='' then drop(ARGV[3]) end
pass()
return holder()`)
