-- What is kept of calls, in bytes: notes what was written, and names what has to go for the whole to fit.
-- KEYS: list of traces, list of records, hash of their bytes; all of one slot
-- ARGV: now in ms; most bytes; how many notes to look at, at most; seconds after which all three are gone if nothing is noted; then pairs of a kind (trace, record) and a note: "<expires in ms> <bytes> <what it is>"
-- Returns: notes of traces that must go; notes of records that must go.
local lists = { trace = KEYS[1], record = KEYS[2] }
local function bytesOf(note)
  return tonumber(string.match(note, '^%d+ (%d+) ')) or 0
end
local function expiresMs(note)
  return tonumber(string.match(note, '^(%d+) ')) or 0
end
for at = 5, #ARGV, 2 do
  redis.call('RPUSH', lists[ARGV[at]], ARGV[at + 1])
  redis.call('HINCRBY', KEYS[3], ARGV[at], bytesOf(ARGV[at + 1]))
end
local left = tonumber(ARGV[3])
local function oldest(kind)
  local note = redis.call('LINDEX', lists[kind], 0)
  return left > 0 and note or nil
end
local function drop(kind, note)
  left = left - 1
  redis.call('LPOP', lists[kind])
  redis.call('HINCRBY', KEYS[3], kind, -bytesOf(note))
end
local function total()
  local bytes = redis.call('HMGET', KEYS[3], 'trace', 'record')
  return (tonumber(bytes[1]) or 0) + (tonumber(bytes[2]) or 0)
end
for _, key in ipairs(KEYS) do
  redis.call('EXPIRE', key, ARGV[4])
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
  while note and total() > tonumber(ARGV[2]) do
    drop(kind, note)
    table.insert(evicted[kind], note)
    note = oldest(kind)
  end
end
return { evicted.trace, evicted.record }
