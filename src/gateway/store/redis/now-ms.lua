-- What every script that needs the time begins with: the time of this server in ms, because the gateways' clocks differ.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
