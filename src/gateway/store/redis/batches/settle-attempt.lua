-- Writes the outcome of an attempt, if it is still this one.
-- KEYS[1] string: the batch; [2] hash: its state and counts; [3] hash: its numbers; [4] sorted set: those that are due
-- KEYS[5] hash: its attempts; [6] sorted set: its calls of the last second; [7] stream: its log
-- ARGV[1] the most entries of the log; [2] the call; [3] its fencing token; [4] the number
-- ARGV[5] `successful`, `failed`, `ambiguous`; `again` or `release`: it is due again; [6] then: when; [7] its entry as JSON, or ''
-- ARGV[8] an entry of the log, or ''; [9] the day of UTC of a call that a person answered, or ''; [10] 1: it was abandoned
-- Returns 1, or 0 when it is settled already.
local left = redis.call('PTTL', KEYS[1])
local attempt = redis.call('HGET', KEYS[5], ARGV[2])
if left <= 0 or not attempt or string.sub(attempt, 1, #ARGV[3] + 1) ~= ARGV[3] .. ' ' then
  return 0
end
local kind = ARGV[5]
redis.call('HDEL', KEYS[5], ARGV[2])
if kind == 'again' or kind == 'release' then
  redis.call('ZADD', KEYS[4], ARGV[6], ARGV[4])
  redis.call('PEXPIRE', KEYS[4], left)
  if ARGV[7] ~= '' then
    redis.call('HSET', KEYS[3], ARGV[4], ARGV[7])
  end
  if kind == 'release' then
    redis.call('HINCRBY', KEYS[2], 'dispatched', -1)
    redis.call('ZREM', KEYS[6], ARGV[2])
  end
else
  redis.call('HDEL', KEYS[3], ARGV[4])
  redis.call('HINCRBY', KEYS[2], kind == 'successful' and 'successful' or 'failed', 1)
  if kind == 'ambiguous' then
    redis.call('HINCRBY', KEYS[2], 'ambiguous', 1)
  end
end
if ARGV[8] ~= '' then
  redis.call('XADD', KEYS[7], 'MAXLEN', ARGV[1], '*', 'entry', ARGV[8])
  redis.call('PEXPIRE', KEYS[7], left)
end
if ARGV[9] ~= '' then
  redis.call('HINCRBY', KEYS[2], 'answered:' .. ARGV[9], 1)
  redis.call('HINCRBY', KEYS[2], 'abandoned:' .. ARGV[9], ARGV[10])
end
return 1
