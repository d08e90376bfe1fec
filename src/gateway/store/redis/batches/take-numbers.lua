-- Decides on numbers that are due: each is dialled, deferred or refused, if it is still due as it was read.
-- KEYS[1] string: the batch; [2] hash: its state and counts; [3] hash: its numbers; [4] sorted set: those that are due
-- KEYS[5] hash: its attempts; [6] sorted set: its calls of the last second; [7] stream: what became of its numbers
-- ARGV[1] the most calls a second; [2] the most calls at once
-- then for each number: the number, when it was due, and `dial`, call id, attempt as JSON; `defer`, until when, ''; `refuse`, '', its entry
-- Returns for each number its fencing token; 0: it is not dialled.
local left = redis.call('PTTL', KEYS[1])
local isOn = left > 0 and redis.call('HGET', KEYS[2], 'state') == 'in_progress'
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', now - 1000)
local recent, open = redis.call('ZCARD', KEYS[6]), redis.call('HLEN', KEYS[5])
local tokens = {}

for at = 3, #ARGV, 5 do
  local number, due, verb = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local token = 0
  if isOn and tonumber(redis.call('ZSCORE', KEYS[4], number) or -1) == tonumber(due) then
    if verb == 'defer' then
      redis.call('ZADD', KEYS[4], ARGV[at + 3], number)
    elseif verb == 'refuse' then
      redis.call('ZREM', KEYS[4], number)
      redis.call('HDEL', KEYS[3], number)
      redis.call('HINCRBY', KEYS[2], 'failed', 1)
      redis.call('XADD', KEYS[7], '*', 'entry', ARGV[at + 4])
      redis.call('PEXPIRE', KEYS[7], left)
    elseif recent < tonumber(ARGV[1]) and open < tonumber(ARGV[2]) then
      token = redis.call('HINCRBY', KEYS[2], 'token', 1)
      redis.call('ZREM', KEYS[4], number)
      redis.call('HSET', KEYS[5], ARGV[at + 3], token .. ' ' .. ARGV[at + 4])
      redis.call('PEXPIRE', KEYS[5], left)
      redis.call('HINCRBY', KEYS[2], 'dispatched', 1)
      redis.call('ZADD', KEYS[6], now, ARGV[at + 3])
      redis.call('PEXPIRE', KEYS[6], 1000)
      recent, open = recent + 1, open + 1
    end
  end
  tokens[#tokens + 1] = token
end
return tokens
