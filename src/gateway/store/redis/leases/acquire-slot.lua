-- Reads a record and takes a place among the calls that it limits, if there is one; an organization's call is listed with that.
-- KEYS[1] the record
-- KEYS[2] sorted set: the calls in progress, by the time in ms at which they expire
-- KEYS[3] sorted set: the calls of the last second, by the time in ms at which they came; kept only under a limit
-- KEYS[4] sorted set: the calls in progress as they are listed; of an organization only
-- KEYS[5] hash: what is known of each of them, by call
-- ARGV[1] 'number' or 'org'
-- ARGV[2] the call; '' takes no place
-- ARGV[3] how long a place is kept, in ms
-- ARGV[4] the call's member of KEYS[4]
-- ARGV[5] what KEYS[5] gets
-- Returns {record or nil, calls in progress, calls of the last second, 1 when the place was taken}, this call not counted.
local text = redis.call('GET', KEYS[1])
if not text then
  return { false, 0, 0, 0 }
end
local limits = cjson.decode(text)
if ARGV[1] == 'number' then
  if type(limits.inbound) ~= 'table' then
    return { text, 0, 0, 0 }
  end
  limits = limits.inbound.options
end
local call, lease = ARGV[2], tonumber(ARGV[3])
-- This server's clock, because the gateways' clocks differ.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZREM', KEYS[2], call)
local calls = redis.call('ZCARD', KEYS[2])
local is_free = type(limits.max_concurrent_calls) ~= 'number' or calls < limits.max_concurrent_calls

local recent = 0
local is_rated = type(limits.max_calls_per_second) == 'number'
if is_rated then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - 1000)
  redis.call('ZREM', KEYS[3], call)
  recent = redis.call('ZCARD', KEYS[3])
  is_free = is_free and recent < limits.max_calls_per_second
end

if call == '' or not is_free then
  return { text, calls, recent, 0 }
end
redis.call('ZADD', KEYS[2], now + lease, call)
redis.call('PEXPIRE', KEYS[2], lease)
if is_rated then
  redis.call('ZADD', KEYS[3], now, call)
  redis.call('PEXPIRE', KEYS[3], 1000)
end
if KEYS[4] then
  redis.call('ZADD', KEYS[4], 0, ARGV[4])
  redis.call('HSET', KEYS[5], call, ARGV[5])
  redis.call('PEXPIRE', KEYS[4], lease)
  redis.call('PEXPIRE', KEYS[5], lease)
end
return { text, calls, recent, 1 }
