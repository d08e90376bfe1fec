-- The lanes in which jobs may be due.
-- KEYS[1] sorted set: lanes by the time in ms at which their first job is due
-- This server's clock, because the gateways' clocks differ.
local time = redis.call('TIME')
return redis.call('ZRANGE', KEYS[1], '-inf', time[1] * 1000 + math.floor(time[2] / 1000), 'BYSCORE')
