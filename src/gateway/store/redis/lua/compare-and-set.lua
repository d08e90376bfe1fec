-- Sets or deletes one key if it still holds what the caller read, and tells all gateways. The only writer of numbers and organizations.
-- KEYS[1] the key
-- ARGV[1] what it must hold; '' when it must not exist
-- ARGV[2] what it shall hold; '' to delete it
-- ARGV[3] the channel on which changed keys are told
-- Returns {1} when written, {0, what it holds} when not; '' stands for no key.
local current = redis.call('GET', KEYS[1]) or ''
if current ~= ARGV[1] then
  return { 0, current }
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
redis.call('PUBLISH', ARGV[3], KEYS[1])
return { 1 }
