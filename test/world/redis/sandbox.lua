-- What a script finds beside Lua's own: `redis` and `cjson`; and what it does not find, because Redis has taken it away or MemoryRedis lacks it.
-- Called with the functions of lua-vm.ts; returns what an error of a script goes through.
local call, pcall_command, decode, encode, null = ...
local getinfo, find, gsub = debug.getinfo, string.find, string.gsub

redis = { call = call, pcall = pcall_command }

local function reply(field, ...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  return { [field] = text }
end

function redis.status_reply(...)
  return reply('ok', ...)
end

-- The first word is the code, unless it is the only one.
function redis.error_reply(...)
  local error_reply = reply('err', ...)
  local text = gsub(gsub(error_reply.err, '^%-', ''), '[\r\n]+$', '')
  error_reply.err = find(text, ' ', 1, true) and text or 'ERR ' .. text
  return error_reply
end

cjson = { decode = decode, encode = encode, null = null }

for _, name in ipairs({ 'coroutine', 'debug', 'dofile', 'io', 'loadfile', 'module', 'newproxy', 'os', 'package', 'print', 'require' }) do
  _G[name] = nil
end
-- Two worlds with one seed do the same.
math.random, math.randomseed = nil, nil

setmetatable(_G, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
  __newindex = function()
    error('Attempt to modify a readonly table', 2)
  end,
})

return function(err)
  local level = 2
  local place = getinfo(level, 'Sl')
  while place and (place.what == 'C' or place.source == '@sandbox') do
    level = level + 1
    place = getinfo(level, 'Sl')
  end
  if type(err) ~= 'table' then
    err = { err = 'ERR ' .. tostring(err) }
  end
  if place then
    err.source, err.line = place.source, place.currentline
  end
  return err
end
