-- After a claim: writes when a lane's first job is due. Times of jobs that came after the claim stay: those are not before it.
-- KEYS[1] sorted set: lanes by the time in ms at which their first job is due
-- ARGV[1] the lane
-- ARGV[2] when the claim was, in ms
-- ARGV[3] when the lane's first job is due, in ms; -1 without one
local due = tonumber(ARGV[3])
local known = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '-1')
if due < 0 then
  if known >= 0 and known < tonumber(ARGV[2]) then
    redis.call('ZREM', KEYS[1], ARGV[1])
  end
elseif known < tonumber(ARGV[2]) or due < known then
  redis.call('ZADD', KEYS[1], due, ARGV[1])
end
return 1
