-- Adds numbers to a batch that is being validated; one that it has already stays as it is.
-- KEYS[1] string: the batch; [2] hash: its state and counts; [3] hash: its numbers; [4] sorted set: those that are due
-- ARGV[1] the time in ms; then for each number: its place, the number, its entry as JSON
-- Returns the count of those that are new.
local left = redis.call('PTTL', KEYS[1])
if left <= 0 or redis.call('HGET', KEYS[2], 'state') ~= 'validating' then
  return 0
end
local new = 0
for at = 2, #ARGV, 3 do
  if redis.call('HSETNX', KEYS[3], ARGV[at + 1], ARGV[at + 2]) == 1 then
    redis.call('ZADD', KEYS[4], ARGV[at], ARGV[at + 1])
    new = new + 1
  end
end
redis.call('HINCRBY', KEYS[2], 'validated', new)
redis.call('HSET', KEYS[2], 'changed_ms', ARGV[1])
for _, key in ipairs({ KEYS[2], KEYS[3], KEYS[4] }) do
  redis.call('PEXPIRE', key, left)
end
return new
