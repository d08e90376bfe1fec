-- Reads records and takes slots among the calls that they limit; an organization's call is listed with that.
-- KEYS for each number or organization:
--   the record
--   sorted set: the calls in progress, by the time in ms at which they expire
--   sorted set: the calls of the last second, by the time in ms at which they came; kept only under a limit
--   sorted set: slots leased ahead, by the time in ms at which they expire; kept only under a limit
--   of an organization, sorted set: the calls in progress as they are listed
--   of an organization, hash: what is known of each of them, by call
-- ARGV[1] how long a slot is kept, in ms
-- ARGV[2] how long a slot is kept that is leased ahead, in ms
-- ARGV[3] how the keys of an agent and of its organization are named, with * for the id, divided by spaces: the number's organization and
--         agent are read too, which only a single Redis can; '' when not
-- ARGV for each number or organization:
--   'number' or 'org'
--   the call; '' takes no slot
--   'ask': takes a slot if there is one; 'has': the call was admitted
--   the slot leased ahead that it was admitted with; '' without one
--   how many slots to lease ahead, at most: they are named <call>:<1, 2, …>
--   the call's member of the list; and what is known of it
-- Returns for each {record, or nil where there is none or the call was admitted, calls in progress (0 where it was admitted without a limit), calls of the last second, 1 when a slot was taken, slots that are left below half of
-- its limits}, this call not counted; then the agent's record. No more slots than those are leased ahead.
local lease, ahead_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local now = now_ms()

local function limit(value)
  return type(value) == 'number' and value or nil
end

-- Calls of a turn have few numbers and organizations: each key is read, cleared and kept once.
local read, cleared, kept = {}, {}, {}

local function record_of(key)
  if read[key] == nil then
    local text = redis.call('GET', key)
    read[key] = text and { text, cjson.decode(text) } or {}
  end
  return unpack(read[key])
end

local function clear(key, until_ms)
  if not cleared[key] then
    redis.call('ZREMRANGEBYSCORE', key, '-inf', until_ms)
    cleared[key] = true
  end
end

local function take(keys, kind, call, how, leased, want, member, listed)
  local text, record = record_of(keys[1])
  if not text then
    return { false, 0, 0, 0, 0 }
  end
  local limits = record
  if kind == 'number' then
    if type(record.inbound) ~= 'table' then
      return { text, 0, 0, 0, 0 }
    end
    limits = record.inbound.options
  end
  local most, rate = limit(limits.max_concurrent_calls), limit(limits.max_calls_per_second)

  clear(keys[2], now)
  local calls, recent, ahead = 0, 0, 0
  -- Nobody asks how many calls there are beside one that was admitted without a limit.
  if most or how == 'ask' then
    redis.call('ZREM', keys[2], call)
    calls = redis.call('ZCARD', keys[2])
  end
  if rate then
    clear(keys[3], now - 1000)
    redis.call('ZREM', keys[3], call)
    recent = redis.call('ZCARD', keys[3])
  end
  if most or rate then
    clear(keys[4], now)
    redis.call('ZREM', keys[4], leased)
    ahead = redis.call('ZCARD', keys[4])
  end
  local is_free = (not most or calls + ahead < most) and (not rate or recent + ahead < rate)
  if call == '' or not (is_free or how == 'has') then
    return { text, calls, recent, 0, 0 }, record
  end
  if how == 'has' then
    text = false
  end

  redis.call('ZADD', keys[2], now + lease, call)
  kept[keys[2]] = lease
  if rate then
    redis.call('ZADD', keys[3], now, call)
    kept[keys[3]] = 1000
  end
  if keys[5] then
    redis.call('ZADD', keys[5], 0, member)
    redis.call('HSET', keys[6], call, listed)
    kept[keys[5]], kept[keys[6]] = lease, lease
  end
  local left = math.huge
  if most then
    left = math.floor(most / 2) - calls - 1 - ahead
  end
  if rate then
    left = math.min(left, math.floor(rate / 2) - recent - 1 - ahead)
  end
  if not (most or rate) or left <= 0 then
    return { text, calls, recent, 1, 0 }, record
  end
  for slot = 1, math.min(left, tonumber(want)) do
    redis.call('ZADD', keys[4], now + ahead_ms, call .. ':' .. slot)
  end
  kept[keys[4]] = ahead_ms
  return { text, calls, recent, 1, left }, record
end

local answers = {}
local key, at = 1, 4
while at <= #ARGV do
  local kind = ARGV[at]
  local count = kind == 'org' and 6 or 4
  local answer, record = take({ unpack(KEYS, key, key + count - 1) }, unpack(ARGV, at, at + 6))
  answers[#answers + 1] = answer
  if ARGV[3] ~= '' and record then
    local names = {}
    for name in string.gmatch(ARGV[3], '%S+') do
      names[#names + 1] = name
    end
    local agent_name, agent_id = table.remove(names, 1), record.inbound.agent_id
    for index, name in ipairs(names) do
      names[index] = string.gsub(name, '%*', record.org_id)
    end
    answers[#answers + 1] = take(names, 'org', answer[4] == 1 and ARGV[at + 1] or '', unpack(ARGV, at + 2, at + 6))
    answers[#answers + 1] = type(agent_id) == 'string' and redis.call('GET', (string.gsub(agent_name, '%*', agent_id)))
  end
  key, at = key + count, at + 7
end
for name, milliseconds in pairs(kept) do
  redis.call('PEXPIRE', name, milliseconds)
end
return answers
