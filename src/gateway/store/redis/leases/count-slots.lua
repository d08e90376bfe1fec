-- Counts the slots of calls in progress that have not expired.
-- KEYS[1] sorted set: the calls by the time in ms at which their slots expire
return redis.call('ZCOUNT', KEYS[1], '(' .. now_ms(), '+inf')
