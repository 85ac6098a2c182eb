import { Script } from '../script.ts'
import { CLOCK } from './clock.ts'
import { LOG } from './log.ts'

/** Fields of a record in the order in which every script answers them. */
export const RECORD_FIELDS = ['k', 'ss', 'c', 's', 'v', 'f', 'n', 'q', 'p', 'u', 'ea', 'xa', 'e', 'li', 'd', 'i', 'fp', 'by'] as const

/**
 * A record is a hash. Documents are JSON text that no script looks into; what is compared has fields of its own: \`s\` state, \`v\` version,
 * \`f\` fence, \`mk\` mark of the ownership, \`o\` and \`co\` operation of the last change and of the creation, \`lo\`, \`lu\`, \`lr\` the lease's
 * operation, end, release, \`lq\` and \`lb\` where the log ends, \`x\` when the store saw the run end.
 *
 * \`settle\`: all keys of a run go at the same moment.
 */
export const RECORD = `
local ENDED={completed=1,failed=1,cancelled=1,lost=1}
local function record()
  return redis.call('HMGET',KEYS[1],${RECORD_FIELDS.map((field) => `'${field}'`).join(',')})
end
local function settle(now,ended,idle)
  local t=redis.call('HMGET',KEYS[1],'xa','x')
  local at=t[1] or (t[2] and t[2]+ended) or now+idle
  for i=1,4 do redis.call('PEXPIREAT',KEYS[i],at-ARGV[1]) end
end`

/**
 * ARGV 2 time to live after the end, 3 when idle, 4 expected version, 5 fence or empty, 6 mark or empty, 7 operation or empty, 8 state or empty,
 * 9 whether the change would end the run, 10 number of fields, then names and values; an empty value removes the field.
 *
 * \`check\` answers what the change comes to without being made. \`write\` makes it: the lease ends with the state.
 */
const CHANGE = `
local function check()
  local h=redis.call('HMGET',KEYS[1],'v','f','s','o','mk')
  if not h[1] then return {'missing'} end
  if ARGV[7]~='' and h[4]==ARGV[7] and h[1]-1==tonumber(ARGV[4]) then return {'ok',record(),false} end
  if h[1]~=ARGV[4] or (ARGV[5]~='' and h[2]~=ARGV[5]) or (ARGV[6]~='' and h[5]~=ARGV[6]) or (ARGV[9]=='1' and ENDED[h[3]]) then
    return {'stale',record()}
  end
end
local function write(now)
  local rec,state,lease=KEYS[1],ARGV[8],false
  redis.call('HINCRBY',rec,'v',1)
  redis.call('HSET',rec,'u',now,'o',ARGV[7])
  for n=11,10+ARGV[10]*2,2 do
    if ARGV[n+1]=='' then redis.call('HDEL',rec,ARGV[n]) else redis.call('HSET',rec,ARGV[n],ARGV[n+1]) end
  end
  if state~='' then
    redis.call('HSET',rec,'s',state)
    if state~='pending' and state~='running' then
      lease=redis.call('HGET',rec,'lo')
      redis.call('HDEL',rec,'lo','lu','lr')
    end
    if ENDED[state] then redis.call('HSETNX',rec,'x',now) end
  end
  local answer={'ok',record(),lease}
  settle(now,ARGV[2],ARGV[3])
  return answer
end`

/**
 * KEYS of the run. ARGV 2 time to live when idle, 3 time by which the request has to be here, 4 operation, 5 its mark, 6 lease in milliseconds,
 * then names and values of fields.
 */
export const CREATE = new Script(CLOCK, RECORD, `
local rec,now=KEYS[1],clock()
local op=redis.call('HGET',rec,'co')
if op then return {op==ARGV[4] and 'created' or 'exists',record()} end
if now>=tonumber(ARGV[3]) then return redis.error_reply('LATE the request came after its lease had run out') end
redis.call('DEL',unpack(KEYS))
redis.call('HSET',rec,'v',1,'f',1,'q',0,'lq',0,'lb',0,'p','[[1,1]]','u',now,'co',ARGV[4],'lo',ARGV[4],'mk',ARGV[5],'lu',now+ARGV[6],unpack(ARGV,7))
redis.call('XADD',KEYS[2],'1-0',ARGV[5],0,'c',0)
settle(now,0,ARGV[2])
return {'created',record()}`)

/** KEYS record. Answers its fields. */
export const UPDATE = new Script(CLOCK, RECORD, CHANGE, `
return check() or write(clock())`)

/**
 * KEYS of the run. ARGV after those of a change: time by which the request has to be here or empty, first and last sequence, events, byte limit,
 * sequence to trim before, floor, whether to close what is open, sequence of the fold or empty, the fold, then id, document and expiry of each interrupt.
 */
export const COMMIT = new Script(CLOCK, LOG, RECORD, CHANGE, `
local found=check()
if found then return found end
local now,n=clock(),10+ARGV[10]*2
local rec,log,ints=KEYS[1],KEYS[2],KEYS[3]
if ARGV[n+1]~='' and now>=tonumber(ARGV[n+1]) then return redis.error_reply('LATE the request came after its index entry may have gone') end
for i=n+11,#ARGV,3 do
  local state=redis.call('HGET',ints,'s'..ARGV[i])
  if state=='claimed' or state=='unknown' then return {'stale',record()} end
end
local h=redis.call('HMGET',rec,'mk','lq','lb','f')
local first,last,s=tonumber(ARGV[n+2]),tonumber(ARGV[n+3]),tonumber(h[2])
if first<=last then
  if first==s+1 then
    local bytes=h[3]+#ARGV[n+4]
    if not redis.call('XADD',log,'NOMKSTREAM',h[4]..'-'..last,h[1],ARGV[n+4],'c',bytes) then return {'missing'} end
    redis.call('HSET',rec,'lq',last,'lb',bytes)
    trim(log,rec,last,h[3],bytes,ARGV[n+5],ARGV[n+6],ARGV[n+7])
    s=last
  elseif first<own(redis.call('HGET',rec,'p')) or last>s then
    return {'misplaced',record(),s}
  end
end
redis.call('HSET',rec,'q',s)
if ARGV[n+8]=='1' then
  local all=redis.call('HGETALL',ints)
  for i=1,#all,2 do
    if all[i+1]=='open' and string.sub(all[i],1,1)=='s' then redis.call('HSET',ints,all[i],'closed') end
  end
end
for i=n+11,#ARGV,3 do
  local id=ARGV[i]
  for _,field in ipairs({'x','d','r','f','t','o'}) do redis.call('HDEL',ints,field..id) end
  redis.call('HSET',ints,'a'..id,ARGV[i+1],'s'..id,'open','n'..id,redis.call('HINCRBY',ints,'#',1))
  if ARGV[i+2]~='' then redis.call('HSET',ints,'x'..id,ARGV[i+2]) end
end
if ARGV[n+9]~='' then
  local f=redis.call('HGET',rec,'Fs')
  if not f or tonumber(f)<tonumber(ARGV[n+9]) then redis.call('HSET',rec,'Fs',ARGV[n+9],'Fd',ARGV[n+10]) end
end
return write(now)`)

/** KEYS of the run. Answers what its index entries need: key, session, client id, lease. */
export const DELETE = new Script(`
local h=redis.call('HMGET',KEYS[1],'ss','c','lo')
redis.call('DEL',unpack(KEYS))
return h`)
