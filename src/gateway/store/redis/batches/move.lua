-- Changes the state of a batch, and adds to its log.
-- KEYS[1] string: the batch; [2] hash: its state and counts; [3] sorted set: its numbers that are due; [4] hash: its attempts; [5] stream: its log
-- ARGV[1] the most entries of the log; [2] the time in ms; [3] the new state, or '': it stays
-- ARGV[4] the states in which this happens, each between commas; [5] `calls`: only without attempts; `all`: and without numbers; or ''
-- ARGV[6] 1: the batch is over, once; [7] the day of UTC; then the entries
-- Returns 1; 0 when nothing was done.
local left = redis.call('PTTL', KEYS[1])
local state = redis.call('HGET', KEYS[2], 'state')
if left <= 0 or not state or not string.find(ARGV[4], ',' .. state .. ',', 1, true) then
  return 0
end
if ARGV[5] ~= '' and redis.call('HLEN', KEYS[4]) > 0 or ARGV[5] == 'all' and redis.call('ZCARD', KEYS[3]) > 0 then
  return 0
end
if ARGV[6] == '1' and redis.call('HSETNX', KEYS[2], 'over', 1) == 0 then
  return 0
end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[2], 'state', ARGV[3], 'changed_ms', ARGV[2])
end
if state == 'paused' and ARGV[3] == 'in_progress' then
  for _, name in ipairs({ 'answered:', 'abandoned:' }) do
    redis.call('HSET', KEYS[2], 'resumed_' .. name .. ARGV[7], redis.call('HGET', KEYS[2], name .. ARGV[7]) or 0)
  end
end
for at = 8, #ARGV do
  redis.call('XADD', KEYS[5], 'MAXLEN', ARGV[1], '*', 'entry', ARGV[at])
end
redis.call('PEXPIRE', KEYS[5], left)
return 1
