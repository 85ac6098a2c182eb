import { Script } from '../script.ts'

/**
 * The log of a run is a stream. An entry's id is `<fence>-<last sequence in it>` (R4). It has two fields: the events under a name that is
 * the mark of the ownership that wrote them, and `c`, the bytes appended to this log until then. `<fence>-0` seals the log for
 * all earlier fences and has, in place of events, the sequence after which its ownership begins.
 *
 * Where the log ends stands in the record (`lq` sequence, `lb` bytes), so that an append copies no other entry.
 *
 * `own`: the first sequence of the current ownership. `trim`: removes whole entries from the old end; it has nothing to do unless the
 * caller names a sequence, or the bytes have grown by another quarter of their limit.
 */
export const LOG = `
local function own(pairs)
  return tonumber(string.match(pairs,'(%d+)%]%]$'))
end
local function trim(log,rec,last,before,bytes,max,min,floor)
  last,min,max=tonumber(last),tonumber(min) or 1,tonumber(max)
  local p
  local function at(seq)
    p=p or redis.call('HGET',rec,'p')
    local fence=0
    for f,s in string.gmatch(p,'%[(%d+),(%d+)%]') do
      if tonumber(s)<=seq then fence=f end
    end
    return fence..'-'..seq
  end
  local function seen(e)
    local s=tonumber(string.match(e[1],'%-(%d+)$'))
    return s>0 and s or tonumber(e[2][2])
  end
  if max and bytes>max and math.floor(bytes*4/max)>math.floor(before*4/max) then
    local lo,hi=seen(redis.call('XRANGE',log,'-','+','COUNT',1)[1]),last
    while lo<hi do
      local mid=math.floor((lo+hi)/2)
      local e=redis.call('XRANGE',log,at(mid),'+','COUNT',1)[1]
      if tonumber(e[2][4])>bytes-max then hi=mid else lo=math.max(seen(e),mid)+1 end
    end
    min=math.max(min,lo)
  end
  if floor~='' then min=math.min(min,floor+1) end
  if min>1 then redis.call('XTRIM',log,'MINID',at(min)) end
end`

/**
 * KEYS log, record. ARGV the caller's mark or empty, fence, sequence before the first, last sequence, the entry, byte limit, sequence to trim
 * before, floor. 1 is success; an append that was made before is found to be in the log (R5).
 */
export const APPEND = new Script(LOG, `
local log,rec=KEYS[1],KEYS[2]
local h=redis.call('HMGET',rec,'f','mk','lq','lb')
if not h[1] then return {'gone'} end
if h[1]~=ARGV[2] or (ARGV[1]~='' and ARGV[1]~=h[2]) then return {'fenced',h[1]} end
if ARGV[3]==ARGV[4] then return {'ok',h[3]} end
if h[3]~=ARGV[3] then
  if tonumber(ARGV[3])+1>=own(redis.call('HGET',rec,'p')) and tonumber(ARGV[4])<=tonumber(h[3]) then return {'ok',h[3]} end
  return {'misplaced',h[3]}
end
local bytes=h[4]+#ARGV[5]
if not redis.call('XADD',log,'NOMKSTREAM',ARGV[2]..'-'..ARGV[4],h[2],ARGV[5],'c',bytes) then return {'gone'} end
redis.call('HSET',rec,'lq',ARGV[4],'lb',bytes)
trim(log,rec,ARGV[4],h[4],bytes,ARGV[6],ARGV[7],ARGV[8])
return 1`)

/**
 * KEYS log, record. ARGV after, limit. Answers the oldest entry's id, the sequence it begins after (or the head of its events, which
 * says how many they are), the newest sequence, and the entries: id, events, id, events, ...
 */
export const READ = new Script(`
local h=redis.call('HMGET',KEYS[2],'p','lq')
local head=redis.call('XRANGE',KEYS[1],'-','+','COUNT',1)[1]
if not h[1] or not head then return end
local after,limit,fence=tonumber(ARGV[1]),tonumber(ARGV[2]),'0'
for f,s in string.gmatch(h[1],'%[(%d+),(%d+)%]') do
  if tonumber(s)<=after+1 then fence=f end
end
local found,at,first,last,whole={},fence..'-'..math.max(after+1,0),nil,0,after>=tonumber(h[2])
while not whole and not (first and last-first>=limit) do
  local page=redis.call('XRANGE',KEYS[1],at,'+','COUNT',16)
  for _,e in ipairs(page) do
    local s=string.match(e[1],'%-(%d+)$')
    if s~='0' then
      found[#found+1]=s
      found[#found+1]=e[2][2]
      last=tonumber(s)
      first=first or last
    end
  end
  whole=#page<16
  if not whole then at='('..page[16][1] end
end
return {head[1],string.match(head[2][2],'^[^\\n]*'),h[2],found}`)

/** KEYS record. ARGV the caller's mark, fence, sequence, state. Keeps a fold unless a later one is there. */
export const SAVE_FOLD = new Script(`
local h=redis.call('HMGET',KEYS[1],'f','mk','Fs')
if not h[1] then return {'gone'} end
if h[1]~=ARGV[2] or (ARGV[1]~='' and ARGV[1]~=h[2]) then return {'fenced',h[1]} end
if not h[3] or tonumber(h[3])<tonumber(ARGV[3]) then redis.call('HSET',KEYS[1],'Fs',ARGV[3],'Fd',ARGV[4]) end
return {'ok'}`)
