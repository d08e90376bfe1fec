-- The lanes in which jobs may be due.
-- KEYS[1] sorted set: lanes by the time in ms at which their first job is due
return redis.call('ZRANGE', KEYS[1], '-inf', now_ms(), 'BYSCORE')
