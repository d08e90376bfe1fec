-- Takes jobs that are due. Nobody else gets them before the claim ends; whoever took them settles them before that.
-- KEYS[1] sorted set: ids of jobs by the time in ms at which they are due
-- KEYS[2] hash: jobs by id
-- ARGV[1] the most to take
-- ARGV[2] how long the claim holds, in ms
-- Returns the time of the claim and that at which the next job is due, in ms (-1 without one), and the jobs.
local now = now_ms()
local jobs = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])) do
  local job = redis.call('HGET', KEYS[2], id)
  if job then
    redis.call('ZADD', KEYS[1], now + ARGV[2], id)
    jobs[#jobs + 1] = job
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
local next = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return { now, tonumber(next[2] or '-1'), jobs }
