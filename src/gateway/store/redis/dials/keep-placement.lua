-- Keeps an idempotency key that this request has claimed.
-- KEYS[1] string: `<digest> <call id> claimed`, or without the last word when it is kept
-- ARGV[1] the call; [2] how long it is kept, in s
-- Returns 1, or 0 when the key is not this request's.
local digest, call = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%S+)')
if call ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], digest .. ' ' .. call, 'EX', ARGV[2])
return 1
