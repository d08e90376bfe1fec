-- Lists a call under its Call-ID. A stranger chooses that: only the newest calls of one are kept.
-- KEYS[1] sorted set: the calls of one Call-ID
-- ARGV[1] the call's member; ARGV[2] how many are kept; ARGV[3] seconds to live
redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[2] - 1)
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
