-- A cell takes the calls of one that is lost, unless either has shown itself or was taken over since.
-- KEYS[1] hash: the cells, as in beat.lua; KEYS[2], KEYS[3] hashes: dialogs of the lost cell, and of the one that takes them
-- ARGV[1] the lost cell; ARGV[2] what the hash said of it all the time; ARGV[3] the cell that takes; ARGV[4] its epoch;
-- ARGV[5] for how long its dialogs are kept, in s
-- Returns the dialogs, key and record in turn; nil: it may not.
local own = redis.call('HGET', KEYS[1], ARGV[3])
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] or not own or string.match(own, '^%d+') ~= ARGV[4] then
  return false
end
redis.call('HSET', KEYS[1], ARGV[1], tonumber(string.match(ARGV[2], '^%d+')) + 1 .. '||' .. ARGV[3])
local dialogs = redis.call('HGETALL', KEYS[2])
for index = 1, #dialogs, 2 do
  redis.call('HSET', KEYS[3], dialogs[index], dialogs[index + 1])
end
redis.call('DEL', KEYS[2])
redis.call('EXPIRE', KEYS[3], ARGV[5])
return dialogs
