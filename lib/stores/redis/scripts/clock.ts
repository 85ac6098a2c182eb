/**
 * The time by which leases, tickets and expiry are judged: Redis' own, never a caller's (R8). The first argument of each script that
 * asks for it is what tests add.
 */
export const CLOCK = `
local function clock()
  local t=redis.call('TIME')
  return t[1]*1000+math.floor(t[2]/1000)+ARGV[1]
end`
