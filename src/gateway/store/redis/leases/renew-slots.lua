-- Keeps slots for another lease; one that was lost is taken again.
-- KEYS[1] sorted set: the calls in progress, by the time in ms at which they expire
-- ARGV[1] how long a place is kept, in ms
-- ARGV[2…] the calls
local expires = now_ms() + tonumber(ARGV[1])
for index = 2, #ARGV do
  redis.call('ZADD', KEYS[1], expires, ARGV[index])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
