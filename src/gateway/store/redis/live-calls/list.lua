-- Reads calls in progress, the newest first. Those whose place has expired (their gateway died) are taken off the list.
-- KEYS[1] sorted set: the calls as they are listed
-- KEYS[2] hash: what is known of each of them, by call
-- KEYS[3] sorted set: the calls by the time in ms at which their slots expire
-- ARGV[1] below this member
-- ARGV[2] above this member
-- ARGV[3] at most so many
-- Returns members, <15 digits>:<call>, and what is known of each, in turn; '' of one that was taken off.
local now = now_ms()
local page = {}
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYLEX', 'REV', 'LIMIT', 0, ARGV[3])) do
  local call = string.sub(member, 17)
  local expires = redis.call('ZSCORE', KEYS[3], call)
  local known = redis.call('HGET', KEYS[2], call)
  if not known or not expires or tonumber(expires) <= now then
    redis.call('ZREM', KEYS[1], member)
    redis.call('HDEL', KEYS[2], call)
    known = ''
  end
  page[#page + 1] = member
  page[#page + 1] = known
end
return page
