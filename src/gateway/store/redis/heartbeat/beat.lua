-- A gateway lives, and may use what it remembers until its next beat is overdue.
-- KEYS[1] sorted set: gateways by the time in ms until which they may
-- ARGV[1] the gateway; ARGV[2] for how long it may, in ms; '0' when it ends
-- ARGV[3] its channel; ARGV[4] what it is told there
-- Returns all gateways that may.
local now = now_ms()
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('PUBLISH', ARGV[3], ARGV[4])
return redis.call('ZRANGE', KEYS[1], 0, -1)
