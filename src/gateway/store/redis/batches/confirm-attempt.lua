-- Writes an attempt again whose INVITE is about to leave, with the time of now, if it is still this one.
-- KEYS[1] hash: the attempts of the batch
-- ARGV[1] the call; [2] its fencing token; [3] the attempt as JSON
-- Returns 1, or 0 when it is settled already.
local attempt = redis.call('HGET', KEYS[1], ARGV[1])
if not attempt or string.sub(attempt, 1, #ARGV[2] + 1) ~= ARGV[2] .. ' ' then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
return 1
