-- Counts a call that is about to be dialled and reserves its cost, if no limit of its organization is reached; lists it with its calls in progress.
-- KEYS[1] sorted set: placed calls in progress, by the time in ms at which they expire
-- KEYS[2] sorted set: those of the last second, by the time in ms at which they came
-- KEYS[3] hash: `calls` and `micros` of the day
-- KEYS[4] sorted set: all calls in progress, by the time in ms at which they expire
-- KEYS[5] sorted set: the calls in progress as they are listed
-- KEYS[6] hash: what is known of each of them, by call
-- KEYS[7] sorted set: the do-not-call list
-- ARGV[1] how long a slot is kept, in ms; [2] how long the day is kept, in ms
-- ARGV[3] the call; [4] its member of the list; [5] what is known of it; [6] millionths to reserve
-- ARGV[7…10] the most a second, at once, a day; the most millionths a day
-- ARGV[11] the called number
-- Returns 'do not call', or the limit that is reached: 'second', 'at once', 'day', 'cost'; '' when the call is counted.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease, call, micros = tonumber(ARGV[1]), ARGV[3], tonumber(ARGV[6])

if redis.call('ZSCORE', KEYS[7], ARGV[11]) then
  return 'do not call'
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - 1000)
local used = redis.call('HMGET', KEYS[3], 'calls', 'micros')
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[7]) then
  return 'second'
end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[8]) then
  return 'at once'
end
if tonumber(used[1] or 0) >= tonumber(ARGV[9]) then
  return 'day'
end
if tonumber(used[2] or 0) + micros > tonumber(ARGV[10]) then
  return 'cost'
end

redis.call('ZADD', KEYS[1], now + lease, call)
redis.call('ZADD', KEYS[2], now, call)
redis.call('PEXPIRE', KEYS[2], 1000)
redis.call('HINCRBY', KEYS[3], 'calls', 1)
redis.call('HINCRBY', KEYS[3], 'micros', micros)
redis.call('PEXPIRE', KEYS[3], ARGV[2])
redis.call('ZADD', KEYS[4], now + lease, call)
redis.call('ZADD', KEYS[5], 0, ARGV[4])
redis.call('HSET', KEYS[6], call, ARGV[5])
for _, key in ipairs({ KEYS[1], KEYS[4], KEYS[5], KEYS[6] }) do
  redis.call('PEXPIRE', key, lease)
end
return ''
