-- laurels_index: applies changes of records to the board of their index. Only one process may apply at a time. The
-- cursor ensures that: the call moves it, and writes nothing unless it has the value that the caller expects.
--
-- KEYS  1 board      hash    as laurels_submit
--       2 index      hash    cursor: number of calls applied; rows: what they applied lately, not read here
--       3 journal    stream  gets a sign that something changed
--       4…           the windows
-- ARGV  1 header     {shape, version, expected, reached, targets: for each window {number of members, seconds to
--                    live or 0}}; expected and reached are cursors, '' for none
--       2 rows
--       3…           for each window place, member, place, member, …; the place '' removes the member.
--                    No member may occur twice in a window
--
-- Returns {'version', current}, {'fenced'}   as laurels_submit
--         {'moved', cursor}                  the cursor is not the expected one; nothing was written
--         {'ok'}

-- Sets the expiry of a window's keys, all of them at once: if the entries have one, so have the others.
local function expire_together(board, window, seconds)
  if seconds > 0 and redis.call('EXPIRE', window.entries, seconds, 'NX') == 1 then expire(board, window, seconds) end
end

local function index(keys, args)
  local header = cmsgpack.unpack(args[1])
  local board = board_of(header.shape)
  local known = redis.call('HMGET', keys[1], 'version', 'fence')
  if tonumber(known[1]) ~= header.version then return { 'version', known[1] or '' } end
  if is_fenced(known[2]) then return { 'fenced' } end
  local cursor = redis.call('HGET', keys[2], 'cursor') or ''
  if cursor ~= header.expected then return { 'moved', cursor } end
  local windows = windows_of(board, keys, 4)
  local at = 3
  for i, target in ipairs(header.targets) do
    local window, members = windows[i], {}
    for j = 1, target[1] do members[j] = args[at + 2 * j - 1] end
    local old = layout.read(board, window, members)
    local placed, gone = {}, {}
    for j, member in ipairs(members) do
      local place = args[at + 2 * j - 2]
      local change = { member = member, old = old[member] }
      if place ~= '' then
        change.new = layout.entry(board, place)
        if change.new ~= change.old then placed[#placed + 1] = change end
      elseif change.old then
        gone[#gone + 1] = change
      end
    end
    if #placed > 0 then write(board, window, placed) end
    take_out(board, window, gone)
    if #placed > 0 then expire_together(board, window, target[2]) end
    at = at + 2 * target[1]
  end
  redis.call('HSET', keys[2], 'cursor', header.reached, 'rows', args[2])
  if #header.targets > 0 then append(2, keys[3], '', '') end
  return { 'ok' }
end

redis.register_function('laurels_index', index)
