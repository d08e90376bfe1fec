-- Writes dialogs of a cell, as long as they are its own.
-- KEYS[1] hash: the cells, as in beat.lua; KEYS[2] hash, expires: the cell's dialogs, JSON by key
-- ARGV[1] the cell; ARGV[2] its epoch; ARGV[3] for how long they are kept, in s; ARGV[4…] a dialog's key, and its record or '', in turn
-- Returns 1 when they are written.
local value = redis.call('HGET', KEYS[1], ARGV[1])
if not value or string.match(value, '^%d+') ~= ARGV[2] then
  return 0
end
for index = 4, #ARGV, 2 do
  if ARGV[index + 1] == '' then
    redis.call('HDEL', KEYS[2], ARGV[index])
  else
    redis.call('HSET', KEYS[2], ARGV[index], ARGV[index + 1])
  end
end
redis.call('EXPIRE', KEYS[2], ARGV[3])
return 1
