-- Keeps calls in the list of those in progress; one that Redis lost is listed again.
-- KEYS[1] sorted set: the calls as they are listed
-- KEYS[2] hash: what is known of each of them, by call
-- ARGV[1] how long the list is kept, in ms
-- ARGV[2…] a call's member, <15 digits>:<call>, and what is known of it, in turn
for index = 2, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], 0, ARGV[index])
  redis.call('HSET', KEYS[2], string.sub(ARGV[index], 17), ARGV[index + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
