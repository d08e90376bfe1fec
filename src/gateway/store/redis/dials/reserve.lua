-- Counts a call that is about to be dialled and reserves its cost, if no limit of its organization or its trunk is reached; lists it with the
-- organization's calls in progress.
-- KEYS[1] sorted set: placed calls in progress, by the time in ms at which they expire
-- KEYS[2] sorted set: those of the last second, by the time in ms at which they came
-- KEYS[3] hash: `calls` and `micros` of the day
-- KEYS[4] sorted set: all calls in progress, by the time in ms at which they expire
-- KEYS[5] sorted set: the calls in progress as they are listed
-- KEYS[6] hash: what is known of each of them, by call
-- KEYS[7] sorted set: the do-not-call list
-- KEYS[8…10] as [1…3], those on its trunk, without `micros`; left out: trunks have no limits
-- The last of KEYS string: the idempotency key that this call has claimed (keep-placement.lua); left out: it has none
-- ARGV[1] how long a slot is kept, in ms; [2] how long the day is kept, in ms
-- ARGV[3] the call; [4] its member of the list, or '': the trunk dials it for our REFER, which ends a call: it is not listed, and takes no slot; [5] what is known of it; [6] millionths to reserve
-- ARGV[7…10] the most a second, at once, a day; the most millionths a day
-- ARGV[11] the called number
-- ARGV[12] how long the idempotency key is kept, in s; empty: there is none
-- ARGV[13…15] as [7…9], on its trunk; empty: no limit
-- Returns 'claim' when the idempotency key is another call's by now, 'do not call', or the limit that is reached: 'second', 'at once', 'day', 'cost', 'trunk second', 'trunk at once', 'trunk day';
-- '' when the call is counted.
local now = now_ms()
local lease, call, micros = tonumber(ARGV[1]), ARGV[3], tonumber(ARGV[6])
local takesSlot = ARGV[4] ~= ''

local function limit(index)
  return tonumber(ARGV[index]) or math.huge
end

-- The first limit from ARGV[most] on that the calls at KEYS[first] and the two after it have reached.
local function reached(first, most)
  redis.call('ZREMRANGEBYSCORE', KEYS[first], '-inf', now)
  redis.call('ZREMRANGEBYSCORE', KEYS[first + 1], '-inf', now - 1000)
  if redis.call('ZCARD', KEYS[first + 1]) >= limit(most) then
    return 'second'
  end
  if takesSlot and redis.call('ZCARD', KEYS[first]) >= limit(most + 1) then
    return 'at once'
  end
  if tonumber(redis.call('HGET', KEYS[first + 2], 'calls') or 0) >= limit(most + 2) then
    return 'day'
  end
  return nil
end

local function count(first)
  if takesSlot then
    redis.call('ZADD', KEYS[first], now + lease, call)
    redis.call('PEXPIRE', KEYS[first], lease)
  end
  redis.call('ZADD', KEYS[first + 1], now, call)
  redis.call('PEXPIRE', KEYS[first + 1], 1000)
  redis.call('HINCRBY', KEYS[first + 2], 'calls', 1)
  redis.call('PEXPIRE', KEYS[first + 2], ARGV[2])
end

-- Kept also for a call that is refused: it has a record.
if ARGV[12] ~= '' then
  local digest, claimed = string.match(redis.call('GET', KEYS[#KEYS]) or '', '^(%S+) (%S+)')
  if claimed ~= call then
    return 'claim'
  end
  redis.call('SET', KEYS[#KEYS], digest .. ' ' .. call, 'EX', ARGV[12])
end
if redis.call('ZSCORE', KEYS[7], ARGV[11]) then
  return 'do not call'
end
local ofOrg = reached(1, 7)
if ofOrg then
  return ofOrg
end
if tonumber(redis.call('HGET', KEYS[3], 'micros') or 0) + micros > tonumber(ARGV[10]) then
  return 'cost'
end
local hasTrunk = KEYS[10] ~= nil
local ofTrunk = hasTrunk and reached(8, 13)
if ofTrunk then
  return 'trunk ' .. ofTrunk
end

count(1)
redis.call('HINCRBY', KEYS[3], 'micros', micros)
if hasTrunk then
  count(8)
end
if not takesSlot then
  return ''
end
redis.call('ZADD', KEYS[4], now + lease, call)
redis.call('ZADD', KEYS[5], 0, ARGV[4])
redis.call('HSET', KEYS[6], call, ARGV[5])
for _, key in ipairs({ KEYS[4], KEYS[5], KEYS[6] }) do
  redis.call('PEXPIRE', key, lease)
end
return ''
