-- The call of an organization is over: gives its slot back and takes it out of the list of those in progress. Until its record is written
-- it is known as one that ends.
-- KEYS[1] the call as one that ends
-- KEYS[2] sorted set: the calls in progress
-- KEYS[3] sorted set: the calls in progress as they are listed
-- KEYS[4] hash: what is known of each of them, by call
-- ARGV[1] what KEYS[1] gets; ARGV[2] its seconds to live
-- ARGV[3] the call; ARGV[4] its member of KEYS[3]
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[3])
redis.call('ZREM', KEYS[3], ARGV[4])
redis.call('HDEL', KEYS[4], ARGV[3])
return 1
