-- Claims a registration, or extends the claim.
-- KEYS[1] who has it
-- ARGV[1] the gateway
-- ARGV[2] for so many milliseconds
-- Returns 1: it is this gateway's; 0: it is another one's.
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
