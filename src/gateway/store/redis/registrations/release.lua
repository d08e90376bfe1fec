-- Gives a claim up.
-- KEYS[1] who has it
-- ARGV[1] the gateway
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
