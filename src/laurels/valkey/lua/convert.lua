-- laurels_convert: brings a window of an earlier version into the present layout, some members at a time. That version
-- had an entry's position before its member, where the double is now 0: the sortable bytes of the score, inverted
-- on a desc board that breaks ties, then those of the moment. A hash had every member's position.
--
-- KEYS  1 board
--       2…           the window, as `windows_of` reads it
--       then         positions, the hash of that version; and a sorted set to convert into
-- ARGV  1 header     {shape, cursor, count}
--
-- Converted members leave the old keys. With the last of them, the new sorted set takes the window's name.
-- -> {next cursor, members left}; the cursor is '0' at the end of a pass

local function convert(keys, args)
  local header = cmsgpack.unpack(args[1])
  local board = board_of(header.shape)
  local positions, made = keys[#keys - 1], keys[#keys]
  local old = windows_of(board, { unpack(keys, 1, #keys - 2) }, 2)[1]
  local window = { entries = made, prefixes = old.prefixes, scores = old.scores, counts = old.counts }
  local cursor, found = unpack(redis.call('HSCAN', positions, header.cursor, 'COUNT', header.count))
  if #found == 0 then return { cursor, redis.call('HLEN', positions) } end
  local is_new = redis.call('EXISTS', made) == 0
  if is_new and board.dense then redis.call('UNLINK', window.scores, window.counts) end
  local changes, elements, members = {}, {}, {}
  for i = 1, #found, 2 do
    local member, position = found[i], found[i + 1]
    local place = board.negated and invert(position) .. string.sub(position, 9) or position
    members[#members + 1] = member
    elements[#elements + 1] = position .. member
    changes[#changes + 1] = { member = member, new = layout.entry(board, place) }
  end
  write(board, window, changes)
  local seconds = redis.call('TTL', positions)
  if seconds >= 0 then
    for _, key in pairs(window) do redis.call('EXPIRE', key, math.max(seconds, 1)) end
  end
  spread('ZREM', old.entries, elements)
  spread('HDEL', positions, members)
  local left = redis.call('HLEN', positions)
  if left == 0 then redis.call('RENAME', made, old.entries) end
  return { cursor, left }
end

redis.register_function{ function_name = 'laurels_convert', callback = convert, flags = { 'allow-oom' } }
