-- Reads a page of a batch's log: what is skipped stays here.
-- KEYS[1] stream: the log
-- ARGV[1] 'asc' or 'desc'
-- ARGV[2] entries to skip
-- ARGV[3] entries to return at most
-- Returns the entries, JSON each.
local skip, take = tonumber(ARGV[2]), tonumber(ARGV[3])
if skip >= redis.call('XLEN', KEYS[1]) then
  return {}
end
local found
if ARGV[1] == 'asc' then
  found = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', skip + take)
else
  found = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', skip + take)
end
local page = {}
for index = skip + 1, #found do
  page[#page + 1] = found[index][2][2]
end
return page
