import { Script } from '../script.ts'
import { CLOCK } from './clock.ts'

/** KEYS sorted set. ARGV 2 milliseconds, 3 member. The member is due after that time, which is the answer. */
export const TOUCH = new Script(CLOCK, `
local at=clock()+ARGV[2]
redis.call('ZADD',KEYS[1],at,ARGV[3])
return at`)

/** KEYS sorted set. ARGV 2 members to pass over, 3 members at most. Answers the time and what is due, longest ago first: member, score, ... */
export const DUE = new Script(CLOCK, `
local now=clock()
return {now,redis.call('ZRANGE',KEYS[1],'-inf',now,'BYSCORE','LIMIT',ARGV[2],ARGV[3],'WITHSCORES')}`)

/** KEYS sorted set. ARGV member, score it was seen with, new score or empty to remove it; again for the next. One that was touched since stays. */
export const CORRECT = new Script(`
for n=1,#ARGV,3 do
  if redis.call('ZSCORE',KEYS[1],ARGV[n])==ARGV[n+1] then
    if ARGV[n+2]=='' then redis.call('ZREM',KEYS[1],ARGV[n]) else redis.call('ZADD',KEYS[1],ARGV[n+2],ARGV[n]) end
  end
end`)

/** KEYS sorted set. ARGV 2 member, 3 score it was seen with; again for the next. What is due and was not touched since goes. */
export const DROP_DUE = new Script(CLOCK, `
local now=clock()
for n=2,#ARGV,2 do
  if redis.call('ZSCORE',KEYS[1],ARGV[n])==ARGV[n+1] and tonumber(ARGV[n+1])<=now then redis.call('ZREM',KEYS[1],ARGV[n]) end
end`)
