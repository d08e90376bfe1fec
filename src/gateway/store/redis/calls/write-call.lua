-- Writes what is kept of an ended call in the hash slot of its organization.
-- KEYS[1] the record
-- KEYS[2] sorted set: the organization's calls
-- KEYS[3] what was said in it
-- KEYS[4] its trace
-- ARGV[1] the record; ARGV[2] its seconds to live
-- ARGV[3] the call's member of KEYS[2]
-- ARGV[4] what was said; '': nothing
-- ARGV[5] the trace; '': none; ARGV[6] its seconds to live
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[3])
if ARGV[4] ~= '' then
  redis.call('SET', KEYS[3], ARGV[4], 'EX', ARGV[2])
end
if ARGV[5] ~= '' then
  redis.call('SET', KEYS[4], ARGV[5], 'EX', ARGV[6])
end
return 1
