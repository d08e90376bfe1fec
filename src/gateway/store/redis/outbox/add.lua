-- Puts a job into the outbox; one that is there already stays as it is.
-- KEYS[1] sorted set: ids of jobs by the time in ms at which they are due
-- KEYS[2] hash: jobs by id
-- ARGV[1] the id
-- ARGV[2] the job
-- Returns when it is due, in ms; 0 when it was there.
if redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) == 0 then
  return 0
end
local now = now_ms()
redis.call('ZADD', KEYS[1], now, ARGV[1])
return now
