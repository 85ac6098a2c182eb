import { Script } from '../script.ts'
import { CLOCK } from './clock.ts'

/** What is known of one interrupt: the fields of its hash, in the order in which `see` answers them. */
export const INTERRUPT_FIELDS = ['a', 's', 'n', 'x', 'd', 'r', 'f', 't', 'o'] as const

/**
 * The interrupts of a run are one hash. Each field's name is a letter and the interrupt's id as JSON: \`a\` the document, \`s\` state, \`n\` number in
 * the order of opening, \`x\` expiry, \`d\` decision, \`r\`, \`f\`, \`t\` run, fence and time of the claim, \`o\` outcome.
 *
 * \`see\`: an interrupt as of now. \`ours\`: whether it is the claimant's, by run and fence.
 */
const INTERRUPTS = `
local rec,ints=KEYS[1],KEYS[2]
local function see(id,now)
  local h=redis.call('HMGET',ints,${INTERRUPT_FIELDS.map((field) => `'${field}'..id`).join(',')})
  if h[2]=='open' and h[4] and tonumber(h[4])<=now then h[2]='expired' end
  h[#h+1]=id
  return h
end
local function ours(h,run,fence)
  return (h[2]=='claimed' or h[2]=='done') and h[6]==run and h[7]==fence
end
local function every(now)
  local all,found=redis.call('HGETALL',ints),{}
  for i=1,#all,2 do
    if string.sub(all[i],1,1)=='s' then found[#found+1]=see(string.sub(all[i],2),now) end
  end
  return found
end`

/** KEYS record, interrupts. Answers session and interrupts. */
export const LIST = new Script(CLOCK, INTERRUPTS, `
local session=redis.call('HGET',rec,'ss')
if not session then return end
return {session,every(clock())}`)

/** KEYS record, interrupts. ARGV 2 whether the claimant is this run itself, 3 its id, 4 its fence, then id, decision and whether it cancels of each answer. */
export const CLAIM = new Script(CLOCK, INTERRUPTS, `
local h=redis.call('HMGET',rec,'ss','f')
local missing,found,now={},{},clock()
for n=5,#ARGV,3 do
  if not h[1] or redis.call('HEXISTS',ints,'s'..ARGV[n])==0 then missing[#missing+1]=ARGV[n] else found[#found+1]=see(ARGV[n],now) end
end
if not h[1] or #missing>0 then return {'missing',missing} end
if ARGV[2]=='1' and ARGV[4]~=h[2] then return {'fenced',h[2]} end
local all,free,expired=true,true,false
for i,v in ipairs(found) do
  all=all and ours(v,ARGV[3],ARGV[4])
  free=free and (v[2]=='open' or v[2]=='expired')
  expired=expired or (v[2]=='expired' and ARGV[4+i*3]~='1')
end
if all then return {'claimed',h[1],found} end
if not free then return {'taken',h[1],found} end
if expired then return {'expired',h[1],found} end
for i=1,#found do
  local id=ARGV[2+i*3]
  redis.call('HSET',ints,'s'..id,'claimed','d'..id,ARGV[3+i*3],'r'..id,ARGV[3],'f'..id,ARGV[4],'t'..id,now)
  found[i]=see(id,now)
end
return {'claimed',h[1],found}`)

/** KEYS record, interrupts. ARGV 2 claimant, 3 fence, 4 id, 5 outcome. */
export const FINISH = new Script(CLOCK, INTERRUPTS, `
local session,id,now=redis.call('HGET',rec,'ss'),ARGV[4],clock()
local v=see(id,now)
if not session or not v[2] then return {'missing'} end
if not ours(v,ARGV[2],ARGV[3]) then return {'lost',session,v} end
if v[2]~='done' then
  redis.call('HSET',ints,'s'..id,'done','o'..id,ARGV[5])
  v=see(id,now)
end
return {'ok',session,v}`)

/** KEYS record, interrupts. ARGV claimant, fence, ids. */
export const GIVE_BACK = new Script(INTERRUPTS, `
for n=3,#ARGV do
  local id=ARGV[n]
  local v=see(id,0)
  if v[2]=='claimed' and ours(v,ARGV[1],ARGV[2]) then
    redis.call('HSET',ints,'s'..id,'open')
    for _,field in ipairs({'d','r','f','t'}) do redis.call('HDEL',ints,field..id) end
  end
end`)

/** KEYS record, interrupts. ARGV successor, its fence. */
export const ABANDON = new Script(INTERRUPTS, `
local session=redis.call('HGET',rec,'ss')
if not session then return end
local found={}
for _,v in ipairs(every(0)) do
  if v[6]==ARGV[1] then
    if v[2]=='claimed' and tonumber(v[7])<tonumber(ARGV[2]) then
      redis.call('HSET',ints,'s'..v[10],'unknown')
      v[2]='unknown'
    end
    if v[2]=='unknown' then found[#found+1]=v end
  end
end
return {session,found}`)
