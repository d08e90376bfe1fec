-- Runs writes in order. One that fails keeps no other from running.
-- KEYS[1] tells a cluster the slot
-- ARGV for each write the number of its words, then the words
-- Returns the errors, each behind the place of its write, from 0.
local failed = {}
local at, place = 1, 0
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  local reply = redis.pcall(unpack(ARGV, at + 1, last))
  if type(reply) == 'table' and reply.err then
    failed[#failed + 1] = place
    failed[#failed + 1] = reply.err
  end
  at, place = last + 1, place + 1
end
return failed
