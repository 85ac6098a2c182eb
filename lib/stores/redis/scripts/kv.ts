import { Script } from '../script.ts'

/** KEYS value. ARGV expected or empty for none, new value, milliseconds. Answers whether it was set, and else what is there. */
export const COMPARE_AND_SET = new Script(`
local value=redis.call('GET',KEYS[1])
if value~=(ARGV[1]~='' and ARGV[1]) then return {0,value} end
redis.call('SET',KEYS[1],ARGV[2],'PX',ARGV[3])
return {1}`)
