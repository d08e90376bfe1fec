-- Reads one call in progress.
-- KEYS[1] hash: what is known of each call in progress
-- KEYS[2] sorted set: the calls by the time in ms at which their slots expire
-- ARGV[1] the call
-- Returns what is known of it; nil when it is not in progress, or its gateway died.
local expires = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not expires or tonumber(expires) <= now_ms() then
  return false
end
return redis.call('HGET', KEYS[1], ARGV[1])
