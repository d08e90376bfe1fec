-- KEYS[1] sorted set: gateways by the time in ms until which they live, as in heartbeat/beat.lua
-- ARGV some of them
-- Returns 1 when one of these lives.
local now = now_ms()
for _, gateway in ipairs(ARGV) do
  if tonumber(redis.call('ZSCORE', KEYS[1], gateway) or 0) > now then
    return 1
  end
end
return 0
