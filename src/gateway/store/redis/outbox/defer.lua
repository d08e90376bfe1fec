-- Writes a job that was taken back, to be taken again later. One that is settled already stays so.
-- KEYS[1] sorted set: ids of jobs by the time in ms at which they are due
-- KEYS[2] hash: jobs by id
-- ARGV[1] the id
-- ARGV[2] the job
-- ARGV[3] in how many ms it is due
-- Returns when it is due, in ms; 0 when it is settled.
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local due = now_ms() + ARGV[3]
redis.call('ZADD', KEYS[1], due, ARGV[1])
return due
