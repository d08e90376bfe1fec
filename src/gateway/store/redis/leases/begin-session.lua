-- Takes the slot of a session at a provider, if no limit is reached: brokenProviderLimit has the same rule.
-- KEYS[1] sorted set: the organization's sessions in progress, by the time in ms at which they expire
-- KEYS[2] hash: what it used today
-- ARGV[1] how long a slot is kept, in ms
-- ARGV[2] the call
-- ARGV[3…5] the most sessions, milliseconds and tokens; '' without a limit
-- Returns {sessions in progress, this one not counted, milliseconds, tokens}
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREM', KEYS[1], ARGV[2])
local sessions = redis.call('ZCARD', KEYS[1])
local used = redis.call('HMGET', KEYS[2], 'milliseconds', 'tokens')
local milliseconds, tokens = tonumber(used[1] or 0), tonumber(used[2] or 0)

local function is_under(limit, value)
  return limit == '' or value < tonumber(limit)
end

if is_under(ARGV[3], sessions) and is_under(ARGV[4], milliseconds) and is_under(ARGV[5], tokens) then
  redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return { sessions, milliseconds, tokens }
