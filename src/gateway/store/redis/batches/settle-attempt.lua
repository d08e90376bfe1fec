-- Writes the outcome of an attempt, if it is still this one.
-- KEYS[1] string: the batch; [2] hash: its state and counts; [3] hash: its numbers; [4] sorted set: those that are due
-- KEYS[5] hash: its attempts; [6] sorted set: its calls of the last second; [7] stream: what became of its numbers
-- ARGV[1] the call; [2] its fencing token; [3] the number
-- ARGV[4] `successful`, `failed`, `ambiguous`; `again` or `release`: it is due again; [5] then: when; [6] its entry as JSON, or ''
-- ARGV[7] an entry of it, or ''; [8] the day of UTC of a call that a person answered, or ''; [9] 1: it was abandoned
-- Returns 1, or 0 when it is settled already.
local left = redis.call('PTTL', KEYS[1])
local attempt = redis.call('HGET', KEYS[5], ARGV[1])
if left <= 0 or not attempt or string.sub(attempt, 1, #ARGV[2] + 1) ~= ARGV[2] .. ' ' then
  return 0
end
local kind = ARGV[4]
redis.call('HDEL', KEYS[5], ARGV[1])
if kind == 'again' or kind == 'release' then
  redis.call('ZADD', KEYS[4], ARGV[5], ARGV[3])
  redis.call('PEXPIRE', KEYS[4], left)
  if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[3], ARGV[3], ARGV[6])
  end
  if kind == 'release' then
    redis.call('HINCRBY', KEYS[2], 'dispatched', -1)
    redis.call('ZREM', KEYS[6], ARGV[1])
  end
else
  redis.call('HDEL', KEYS[3], ARGV[3])
  redis.call('HINCRBY', KEYS[2], kind == 'successful' and 'successful' or 'failed', 1)
  if kind == 'ambiguous' then
    redis.call('HINCRBY', KEYS[2], 'ambiguous', 1)
  end
end
if ARGV[7] ~= '' then
  redis.call('XADD', KEYS[7], '*', 'entry', ARGV[7])
  redis.call('PEXPIRE', KEYS[7], left)
end
if ARGV[8] ~= '' then
  redis.call('HINCRBY', KEYS[2], 'answered:' .. ARGV[8], 1)
  redis.call('HINCRBY', KEYS[2], 'abandoned:' .. ARGV[8], ARGV[9])
end
return 1
