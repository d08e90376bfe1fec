-- Adds an entry to a batch's log, which goes when the batch does.
-- KEYS[1] string: the batch
-- KEYS[2] stream: its log
-- ARGV[1] the entry, JSON
-- ARGV[2] the most entries that are kept
-- Returns 1, or 0 when there is no such batch.
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  return 0
end
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[2], '*', 'entry', ARGV[1])
redis.call('PEXPIRE', KEYS[2], left)
return 1
