import { Script } from '../script.ts'
import { CLOCK } from './clock.ts'
import { RECORD } from './record.ts'

/**
 * KEYS of the run. ARGV 2 time to live when idle, 3 time by which the request has to be here, 4 whether an expired lease may be ended, 5 node, 6 operation,
 * 7 its mark, 8 lease in milliseconds. Raising the fence and sealing the log is one step (R4). An ownership that appended nothing keeps no
 * pair: no sequence of it is to be found.
 */
export const TAKE = new Script(CLOCK, RECORD, `
local rec,log,now=KEYS[1],KEYS[2],clock()
local h=redis.call('HMGET',rec,'s','f','lo','lu','n','p','lq','lb')
if not h[1] then return {'missing'} end
if ENDED[h[1]] then return {'ended',record()} end
local fence,lease=tonumber(h[2]),h[3]
if lease and lease~=ARGV[6] then
  local left=h[4]-now
  if ARGV[4]~='1' or left>0 then return {'held',h[5],fence,left} end
end
local last=tonumber(h[7])
if lease~=ARGV[6] then
  if now>=tonumber(ARGV[3]) then return redis.error_reply('LATE the request came after its lease had run out') end
  fence=fence+1
  local kept=''
  for f,s in string.gmatch(h[6],'%[(%d+),(%d+)%]') do
    if tonumber(s)<=last then kept=kept..'['..f..','..s..'],' end
  end
  if not redis.call('XADD',log,'NOMKSTREAM',fence..'-0',ARGV[7],last,'c',h[8]) then return {'missing'} end
  redis.call('HINCRBY',rec,'v',1)
  redis.call('HSET',rec,'f',fence,'n',ARGV[5],'mk',ARGV[7],'q',last,'p','['..kept..'['..fence..','..(last+1)..']]','u',now)
  redis.call('HDEL',rec,'o')
end
redis.call('HSET',rec,'lo',ARGV[6],'lu',now+ARGV[8])
redis.call('HDEL',rec,'lr')
settle(now,0,ARGV[2])
return {'yes',record(),last,lease}`)

/** KEYS of the run. ARGV 2 time to live when idle, 3 mark or empty, 4 fence, 5 lease in milliseconds. Keeps the run's keys as long as it runs. */
export const RENEW = new Script(CLOCK, RECORD, `
local rec,now=KEYS[1],clock()
local h=redis.call('HMGET',rec,'f','lo','lr','mk')
if not h[1] then return {'lost',0} end
if h[1]~=ARGV[4] or (ARGV[3]~='' and ARGV[3]~=h[4]) or not h[2] or h[3] then return {'lost',h[1]} end
redis.call('HSET',rec,'lu',now+ARGV[5])
if redis.call('PTTL',rec)<ARGV[2]*0.75 then settle(now,0,ARGV[2]) end
return {'ok',h[2]}`)

/** KEYS record. ARGV 2 mark or empty, 3 fence. Answers the lease that ended and whether another one may be taken at once. */
export const RELEASE = new Script(CLOCK, `
local rec=KEYS[1]
local h=redis.call('HMGET',rec,'f','lo','s','mk')
if h[1]~=ARGV[3] or not h[2] or (ARGV[2]~='' and ARGV[2]~=h[4]) then return end
if h[3]=='waiting' then
  redis.call('HDEL',rec,'lo','lu','lr')
  return {h[2],'none'}
end
redis.call('HSET',rec,'lu',clock(),'lr',1)
return {h[2],'due'}`)
