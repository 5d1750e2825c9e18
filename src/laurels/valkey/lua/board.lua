-- Functions on a whole board: its version, its list of windows, its members.
--
-- laurels_adopt      KEYS 1 board, 2…19 for each of ids, calls and once the previous, present and next bucket,
--                    where earlier versions kept it, and its three generations (see generations.lua)
--                    ARGV 1 version
--   puts a version of the board in force, unless a later one is; and turns those buckets into generations, once
--   -> the version in force
--
-- laurels_retire     KEYS 1 board;  ARGV 1 number, above every version that the board had
--   ends the version in force and any fence. The board's keys may be deleted under this number, except windows that
--   were taken over from another program.
--   -> 1; 0 if this was finished before, or a later version is in force
--
-- laurels_retired    KEYS 1 board;  ARGV 1 number, 2 seconds
--   notes that the keys are deleted. The number stays for these seconds, so that no earlier version can be put in
--   force.
--   -> 1; 0 if the keys are not being deleted under this number
--
-- laurels_register   KEYS 1 board, 2 windows (zset of 'label|slot' by start), 3… for each window: cuts (set of its
--                    groups), then its own keys, entries first, if a template names them
--                    ARGV 1 version, 2… for each window: 'label|slot', start in seconds, seconds to live or 0,
--                    adopt: 1 to take over a sorted set of another program, group or '', number of its own keys
--   lists windows before their first write; all of them or none
--   -> {'version', current} as laurels_submit
--      {'taken', number, type}   another program has the key of this number in KEYS
--      {'ok'}
--
-- laurels_remove     KEYS 1 board, 2 journal, then the ratings if `rated` is 1, then windows
--                    ARGV 1 header {shape, version, journal, durable} as laurels_submit, and rated; 2 journal entry,
--                    3 member
--   removes the member from these windows: entry, position, metadata and distinct score; and its rating
--   -> {'version', current} or {'fenced'} as laurels_submit; {'ok', number of them that had the member}
--
-- laurels_fold       KEYS 1 board, 2… a rolling window, then the windows of its days, oldest first
--                    ARGV 1 header {shape, version, op, day, cursor, count, seconds}
--   computes the rolling entries of some members that are in day number `day` and in no earlier day; removes those
--   whose sum is out of range, which an import or the end of a day can cause
--   -> {'version', current} or {'fenced'} as laurels_submit; {'ok', next cursor}, '0' at the end of that day
--   It may be repeated, and run beside submissions: it always computes an entry from the present days.

local REMEMBERED = { 'ids', 'calls', 'once' }

-- Turns buckets into generations. The present bucket becomes the one to write to; the next is the first to go.
local function take_over(keys)
  for kind, name in ipairs(REMEMBERED) do
    if #keys == 19 and redis.call('HSETNX', keys[1], name, string.format('1 %.0f', seconds_now())) == 1 then
      for i = 6 * kind - 4, 6 * kind - 2 do
        if redis.call('EXISTS', keys[i]) == 1 then redis.call('RENAMENX', keys[i], keys[i + 3]) end
      end
    end
  end
end

-- The layout of new windows. Boards of an earlier version have no such field until they are converted.
local LAYOUT = 2

local function adopt(keys, args)
  local known = tonumber(redis.call('HGET', keys[1], 'version'))
  local version = tonumber(args[1])
  if known then take_over(keys) end
  if known and known >= version then return known end
  redis.call('HSET', keys[1], 'version', args[1])
  if not known then redis.call('HSET', keys[1], 'layout', LAYOUT) end
  redis.call('PERSIST', keys[1])
  return version
end

-- The fields and values of windows that were taken over.
local function adopted_fields(board_key)
  local fields = {}
  local held = redis.call('HGETALL', board_key)
  for i = 1, #held, 2 do
    if string.sub(held[i], 1, 8) == adopted_field('') then
      fields[#fields + 1] = held[i]
      fields[#fields + 1] = held[i + 1]
    end
  end
  return fields
end

local function retire(keys, args)
  local known, dropping = unpack(redis.call('HMGET', keys[1], 'version', 'dropping'))
  known = tonumber(known)
  local number = tonumber(args[1])
  if known and (known > number or (known == number and not dropping)) then return 0 end
  local adopted = adopted_fields(keys[1])
  redis.call('UNLINK', keys[1])
  redis.call('HSET', keys[1], 'version', args[1], 'dropping', args[1])
  spread('HSET', keys[1], adopted)
  return 1
end

local function retired(keys, args)
  if redis.call('HGET', keys[1], 'dropping') ~= args[1] then return 0 end
  redis.call('UNLINK', keys[1])
  redis.call('HSET', keys[1], 'version', args[1])
  redis.call('EXPIRE', keys[1], args[2])
  return 1
end

-- Before a window is listed for the first time: a key that exists already belongs to another program. Returns its
-- number and type, unless it is a sorted set of finite scores that may be taken over; or nil, and whether there is one.
local function find_taken(window, adopts)
  for number, key in ipairs(window) do
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'none' and (number > 1 or kind ~= 'zset' or not adopts) then return number, kind end
  end
  local entries = window[1]
  if redis.call('EXISTS', entries) == 0 then return nil, false end
  if redis.call('ZCOUNT', entries, 'inf', 'inf') + redis.call('ZCOUNT', entries, '-inf', '-inf') > 0 then
    return 1, 'zset with infinite scores'
  end
  return nil, true
end

local function register(keys, args)
  local version = redis.call('HGET', keys[1], 'version')
  if version ~= args[1] then return { 'version', version or '' } end
  local cuts, adopted, listing = 3, {}, { 'ZADD', keys[2] }
  for at = 2, #args, 6 do
    local own = tonumber(args[at + 5])
    if own > 0 then
      local is_listed = redis.call('ZMSCORE', keys[2], args[at])[1]
        and (args[at + 4] == '' or redis.call('SMISMEMBER', keys[cuts], args[at + 4])[1] == 1)
      if not is_listed then
        local number, what = find_taken({ unpack(keys, cuts + 1, cuts + own) }, args[at + 3] == '1')
        if number then return { 'taken', cuts + number, what } end
        if what then adopted[#adopted + 1] = keys[cuts + 1] end
      end
    end
    listing[#listing + 1] = args[at + 1]
    listing[#listing + 1] = args[at]
    cuts = cuts + 1 + own
  end
  for _, entries in ipairs(adopted) do redis.call('HSET', keys[1], adopted_field(entries), 1) end
  redis.call(unpack(listing))
  cuts = 3
  for at = 2, #args, 6 do
    local seconds, group = tonumber(args[at + 2]), args[at + 4]
    if group ~= '' then
      redis.call('SADD', keys[cuts], group)
      if seconds > 0 then
        -- Groups in other timezones end at other times: the list expires with the last of them.
        redis.call('EXPIRE', keys[cuts], seconds, 'NX')
        redis.call('EXPIRE', keys[cuts], seconds, 'GT')
      end
    end
    cuts = cuts + 1 + tonumber(args[at + 5])
  end
  return { 'ok' }
end

local function remove(keys, args)
  local header = cmsgpack.unpack(args[1])
  local board = board_of(header.shape)
  local version, fence = unpack(redis.call('HMGET', keys[1], 'version', 'fence'))
  if tonumber(version) ~= header.version then return { 'version', version or '' } end
  if is_fenced(fence) then return { 'fenced' } end
  local member, windows = args[3], windows_of(board, keys, 3 + (header.rated or 0))
  local found = header.rated == 1 and redis.call('HDEL', keys[3], member) or 0
  for _, window in ipairs(windows) do
    local entry = layout.read(board, window, { member })[member]
    if entry then
      found = found + 1
      layout.remove(board, window, { { member = member, old = entry } })
      if board.metadata then redis.call('HDEL', window.metadata, member) end
      if board.dense then count_scores(board, window, { { member = member, old = entry } }) end
    end
  end
  append(header.journal, keys[2], args[2], '')
  if header.durable == 1 then redis.call('HSET', keys[1], 'version', version) end
  return { 'ok', found }
end

local function fold(keys, args)
  local header = cmsgpack.unpack(args[1])
  local board = board_of(header.shape)
  local version, fence = unpack(redis.call('HMGET', keys[1], 'version', 'fence'))
  if tonumber(version) ~= header.version then return { 'version', version or '' } end
  if is_fenced(fence) then return { 'fenced' } end
  local windows = windows_of(board, keys, 2)
  local rolling = table.remove(windows, 1)
  local cursor, members = layout.scan(board, windows[header.day], header.cursor, header.count)
  local by_day = {}
  for day = 1, #windows do
    if #members == 0 then break end
    by_day[day] = layout.read(board, windows[day], members)
    if day < header.day then
      local left = {}
      for _, member in ipairs(members) do
        if not by_day[day][member] then left[#left + 1] = member end
      end
      members = left
    end
  end
  if #members == 0 then return { 'ok', cursor } end
  local old = layout.read(board, rolling, members)
  local changes, gone = {}, {}
  for _, member in ipairs(members) do
    local entries = {}
    for day = header.day, #windows do entries[#entries + 1] = by_day[day][member] end
    local new = folded(board, header.op, entries)
    if new and new ~= old[member] then
      changes[#changes + 1] = { member = member, old = old[member], new = new }
    elseif not new and old[member] then
      gone[#gone + 1] = { member = member, old = old[member] }
    end
  end
  write(board, rolling, changes)
  take_out(board, rolling, gone)
  expire(board, rolling, header.seconds)
  return { 'ok', cursor }
end

redis.register_function{ function_name = 'laurels_adopt', callback = adopt, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'laurels_retire', callback = retire, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'laurels_retired', callback = retired, flags = { 'allow-oom' } }
redis.register_function('laurels_register', register)
redis.register_function{ function_name = 'laurels_remove', callback = remove, flags = { 'allow-oom' } }
redis.register_function('laurels_fold', fold)
