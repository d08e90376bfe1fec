-- What is kept of calls, in bytes: notes what was written, and names what has to go for the whole to fit.
-- KEYS: list of traces, list of records, hash of their bytes; all of one slot
-- ARGV: now in ms; most bytes; how many notes to look at, at most; seconds after which all three are gone if nothing is noted; bytes of the new traces; of the new records; how many of the notes are of traces; then the notes, those of traces first: "<expires in ms> <bytes> <what it is>"
-- Returns: notes of traces that must go; notes of records that must go.
local lists = { trace = KEYS[1], record = KEYS[2] }
local before = redis.call('HMGET', KEYS[3], 'trace', 'record')
local bytes = { trace = (tonumber(before[1]) or 0) + tonumber(ARGV[5]), record = (tonumber(before[2]) or 0) + tonumber(ARGV[6]) }
-- Lua's stack takes some thousand words.
local function push(kind, first, last)
  for at = first, last, 1000 do
    redis.call('RPUSH', lists[kind], unpack(ARGV, at, math.min(at + 999, last)))
  end
end
local firstRecord = 8 + tonumber(ARGV[7])
push('trace', 8, firstRecord - 1)
push('record', firstRecord, #ARGV)
local left = tonumber(ARGV[3])
local function oldest(kind)
  local note = redis.call('LINDEX', lists[kind], 0)
  return left > 0 and note or nil
end
local function drop(kind, note)
  left = left - 1
  redis.call('LPOP', lists[kind])
  bytes[kind] = bytes[kind] - (tonumber(string.match(note, '^%d+ (%d+) ')) or 0)
end
local function expiresMs(note)
  return tonumber(string.match(note, '^(%d+) ')) or 0
end
-- What expired is gone by itself.
for kind in pairs(lists) do
  local note = oldest(kind)
  while note and expiresMs(note) <= tonumber(ARGV[1]) do
    drop(kind, note)
    note = oldest(kind)
  end
end
-- The oldest traces go first, then the oldest records.
local evicted = { trace = {}, record = {} }
for _, kind in ipairs({ 'trace', 'record' }) do
  local note = oldest(kind)
  while note and bytes.trace + bytes.record > tonumber(ARGV[2]) do
    drop(kind, note)
    table.insert(evicted[kind], note)
    note = oldest(kind)
  end
end
redis.call('HSET', KEYS[3], 'trace', bytes.trace, 'record', bytes.record)
for _, key in ipairs(KEYS) do
  redis.call('EXPIRE', key, ARGV[4])
end
return { evicted.trace, evicted.record }
