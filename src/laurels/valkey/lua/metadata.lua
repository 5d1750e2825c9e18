-- laurels_set_metadata: sets or deletes the metadata of a member's entries in some windows.
--
-- KEYS  1 board, 2 journal, 3…5 ids    as laurels_submit
--       6…             the windows with their metadata; rolling windows have none
-- ARGV  1 header       {shape, version, journal, durable, replayed} as laurels_submit, and
--                      id        the idempotency id; '' for none
--                      remember  1: remember the id, because this is its last call
--                      metadata  JSON, or '' for none
--                      seconds   each window's seconds to live, or 0
--       2 journal entry, whose windows are in the order of the keys
--       3 member
--
-- Returns {'version', current} or {'fenced'}   as laurels_submit
--         {'duplicate'}   the id was seen before; nothing was written
--         {'ok', found}   the number of these windows that have the member

local function set_metadata(keys, args)
  local header = cmsgpack.unpack(args[1])
  local board = board_of(header.shape)
  local known = redis.call('HMGET', keys[1], 'version', 'fence', 'ids')
  if tonumber(known[1]) ~= header.version then return { 'version', known[1] or '' } end
  if is_fenced(known[2]) then return { 'fenced' } end
  -- The WAITAOF that follows needs a write.
  if header.durable == 1 then redis.call('HSET', keys[1], 'version', known[1]) end
  if remembered({ unpack(keys, 3, 5) }, { header.id })[header.id] then return { 'duplicate' } end
  local member, windows, skipped = args[3], windows_of(board, keys, 6), {}
  for i, window in ipairs(windows) do
    if layout.read(board, window, { member })[member] then
      write_metadata(window, { { member = member, metadata = header.metadata } })
      expire(board, window, header.seconds[i])
    else
      skipped[#skipped + 1] = i
    end
  end
  local found = #windows - #skipped
  if found > 0 then
    if header.metadata ~= '' then redis.call('HSET', keys[1], 'metadata', 1) end
    append(header.journal, keys[2], args[2], table.concat(skipped, ','))
    if header.remember == 1 then remember_ids(keys, { header.id }, known[3], header.replayed) end
  end
  return { 'ok', found }
end

redis.register_function('laurels_set_metadata', set_metadata)
