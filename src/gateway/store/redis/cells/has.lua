-- KEYS[1] hash: the cells, as in beat.lua
-- ARGV[1] a cell; ARGV[2] how the hashes of dialogs are named, without the cell, in the same slot; ARGV[3] a dialog's key
-- Returns 1 when another cell has the dialog, or one that is lost.
for _, cell in ipairs(redis.call('HKEYS', KEYS[1])) do
  if cell ~= ARGV[1] and redis.call('HEXISTS', ARGV[2] .. cell, ARGV[3]) == 1 then
    return 1
  end
end
return 0
