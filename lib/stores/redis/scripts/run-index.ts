import { Script } from '../script.ts'
import { CLOCK } from './clock.ts'

/**
 * KEYS the owner's, the session's and the client id's list, checks. ARGV 2 when the run was made, 3 member, 4 time to live, 5 milliseconds until an entry
 * is looked at again. Answers up to two entries of the owner that are due to be looked at: what is added pays for what has gone.
 */
export const ADD = new Script(CLOCK, `
local now=clock()
for i=1,3 do redis.call('ZADD',KEYS[i],ARGV[2],ARGV[3]) end
redis.call('ZADD',KEYS[4],now+ARGV[5],ARGV[3])
for i=1,4 do redis.call('PEXPIRE',KEYS[i],ARGV[4]) end
local due=redis.call('ZRANGE',KEYS[4],'-inf',now,'BYSCORE','LIMIT',0,2)
local found={}
for _,member in ipairs(due) do
  local score=now+ARGV[5]-1
  redis.call('ZADD',KEYS[4],score,member)
  found[#found+1]=member
  found[#found+1]=string.format('%.0f',score)
end
return found`)

/** KEYS as above. ARGV 2 member, 3 the score it was seen with, or empty: only if it is due. */
export const DROP = new Script(CLOCK, `
local score=redis.call('ZSCORE',KEYS[4],ARGV[2])
if score then
  if ARGV[3]=='' and tonumber(score)>clock() then return end
  if ARGV[3]~='' and score~=ARGV[3] then return end
end
for i=1,4 do redis.call('ZREM',KEYS[i],ARGV[2]) end`)

/** KEYS as above. ARGV member. The run was deleted. */
export const REMOVE = new Script(`
for i=1,4 do redis.call('ZREM',KEYS[i],ARGV[1]) end`)
