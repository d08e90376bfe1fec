-- A cell lives: whoever watches it sees another beat. One that does not know its epoch yet, or whose calls were taken over, only learns that.
-- KEYS[1] hash: by cell, `<epoch>|<beat>|<its gateways>|<time, in s>`; of one whose calls were taken over, `<epoch>||<the cell that has them>`
-- ARGV[1] the cell; ARGV[2] its epoch, 0: it does not know; ARGV[3] `<beat>|<its gateways>`
-- Returns its epoch; the cell that took its calls over, or ''; 1 when Redis did not know the cell; all cells, name and value in turn; and the time, in s.
local value = redis.call('HGET', KEYS[1], ARGV[1])
local own, epoch, now = tonumber(ARGV[2]), 1, math.floor(now_ms() / 1000)
if value then
  epoch = tonumber(string.match(value, '^%d+'))
  if own < epoch then
    return { epoch, string.match(value, '^%d+||(.*)') or '', 0, {}, now }
  end
end
epoch = math.max(own, epoch)
redis.call('HSET', KEYS[1], ARGV[1], epoch .. '|' .. ARGV[3] .. '|' .. now)
return { epoch, '', value and 0 or 1, redis.call('HGETALL', KEYS[1]), now }
