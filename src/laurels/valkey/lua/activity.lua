-- Activity: counts events in the counters of users' days, each event exactly once.
--
-- All keys of a call, except streams, belong to one shard of users; see activity/valkey_keys.py. A call's effects are
-- a msgpack array that begins with:
--   limits   {rate, length}: a second with more than `rate` messages is hot; more than `length` hot seconds in a row
--            are a burst, whose messages do not count
--   late     {stream, number of its effects that came after their day had expired, …}
--   days     for each user and day {key of the counters, 'YMD:USER', campus, seconds to live,
--            key of the campus's users, {counter, increment, …}, key of senders or 0, {sender, …},
--            key of accepts or 0, {user who accepted, …}, key of seconds or 0, {second, dms, room messages, …}}
-- A key is given as its index in KEYS.
--
-- laurels_accrue     KEYS 1 cursors, 2 changed, 3 parked, 4…
--                    ARGV 1 {limits, late, days, stream, expected cursor or '', new cursor, {key of a list, user,
--                    {effects that must wait, …}, …}}
--   applies the effects and moves the stream's cursor, if it is the expected one
--   -> {'ok', days changed}; {'cursor', present cursor or ''} if it is another, and nothing was done. It writes all
--      the same, so that a WAITAOF or WAIT after it covers everything written before.
--
-- laurels_release    KEYS 1 cursors, 2 changed, 3 parked, 4 the list of effects that wait for one user, 5…
--                    ARGV 1 {limits, late, days, user, first effect of the list, number of effects applied}
--   applies effects that waited, and removes them from the list
--   -> {'ok', days changed}; {'gone'} if another effect is the first, and nothing was done
--
-- laurels_number     KEYS 1 stream;  ARGV 1 about how many entries to keep, 2 {{number, {field, value, …}}, …}
--   adds entries in the order of their numbers, which become their ids; skips numbers that the stream has passed
--   -> the number of the last entry
--
-- laurels_unmark     KEYS 1 changed;  ARGV mark, number, mark, number, …
--   removes the marks that still have this number -> how many
--
-- laurels_discard    KEYS 1 dead letters, 2 their cursors;  ARGV 1 stream, 2 most entries, 3… id, reason, payload
--   adds the events after the stream's cursor to the dead letters, and moves the cursor -> how many
--
-- laurels_join       KEYS 1 stream;  ARGV 1 group
--   creates the group before the first entry, if it does not exist
--   -> {id of the last entry applied, number of entries applied}; {} if there is no stream
--
-- laurels_advance    KEYS 1 stream;  ARGV 1 group, 2 expected id, 3 new id, 4 number of entries between them
--   -> 1; 0 if the group is at another id, and nothing was changed
--
-- laurels_backlog    KEYS 1 stream;  ARGV 1 group
--   -> {entries applied, entries that wait, id of the oldest that waits or ''}; writes nothing
--
-- laurels_attend     KEYS 1 workers;  ARGV 1 worker, 2 milliseconds
--   notes a heartbeat -> every worker with one within this time, this worker included

local NEIGHBOURS_TOGETHER = 64

local function counts_of(packed)
  if not packed then return 0, 0 end
  local dms, room = string.match(packed, '^(%d+) (%d+)$')
  if dms then return tonumber(dms), tonumber(room) end
  return tonumber(packed), 0
end

local function read_seconds(seconds, wanted)
  local missing = {}
  for _, second in ipairs(wanted) do
    if not seconds.dms[second] then
      missing[#missing + 1] = second
      seconds.dms[second] = 0
    end
  end
  for first = 1, #missing, 1000 do
    local last = math.min(first + 999, #missing)
    local held = redis.call('HMGET', seconds.key, unpack(missing, first, last))
    for i, packed in ipairs(held) do
      local second = missing[first + i - 1]
      seconds.dms[second], seconds.room[second] = counts_of(packed)
    end
  end
end

local function is_hot(seconds, second)
  return seconds.dms[second] and seconds.dms[second] + seconds.room[second] > seconds.rate
end

-- The number of hot seconds next to this one in a direction, up to `length` + 1.
local function hot_beside(seconds, second, step)
  local found = 0
  while found <= seconds.length and is_hot(seconds, second + step * (found + 1)) do found = found + 1 end
  return found
end

-- The first second of the burst that reaches back from this second, however long it is.
local function first_of_burst(seconds, second)
  while true do
    local wanted = {}
    for i = 1, NEIGHBOURS_TOGETHER do wanted[i] = second - i end
    read_seconds(seconds, wanted)
    for _ = 1, NEIGHBOURS_TOGETHER do
      if not is_hot(seconds, second - 1) then return second end
      second = second - 1
    end
  end
end

local function uncount(seconds, first, last)
  for second = first, last do
    seconds.dm_change = seconds.dm_change - seconds.dms[second]
    seconds.room_change = seconds.room_change - seconds.room[second]
  end
end

-- Updates the last burst, after the run around this second became or extended a burst.
local function note_burst(seconds, second, before, after)
  local first, last = second - before, second + after
  if seconds.muted_first then
    if second < seconds.muted_first - 1 then return end
    if second == seconds.muted_last + 1 then first = seconds.muted_first end
    if second == seconds.muted_first - 1 then
      last = seconds.muted_last
      if before > seconds.length then first = first_of_burst(seconds, second) end
    end
  end
  seconds.muted_first, seconds.muted_last = first, last
end

-- Counts messages in a second that is hot or becomes hot.
local function heat(seconds, second, dms, room)
  local was_hot = is_hot(seconds, second)
  local before, after = hot_beside(seconds, second, -1), hot_beside(seconds, second, 1)
  local is_burst = before + 1 + after > seconds.length
  if is_burst and not was_hot then
    uncount(seconds, second, second)
    if before <= seconds.length then uncount(seconds, second - before, second - 1) end
    if after <= seconds.length then uncount(seconds, second + 1, second + after) end
    note_burst(seconds, second, before, after)
  end
  seconds.dms[second] = seconds.dms[second] + dms
  seconds.room[second] = seconds.room[second] + room
  if not is_burst then
    seconds.dm_change = seconds.dm_change + dms
    seconds.room_change = seconds.room_change + room
  end
end

-- The changes of the counters by these messages, by the rule of activity/guard.py: all messages outside of bursts
-- count. Their order does not matter.
local function guard(key, given, limits, muted)
  local seconds = {
    key = key, rate = limits[1], length = limits[2], dms = {}, room = {}, dm_change = 0, room_change = 0,
  }
  local muted_first, muted_last = string.match(muted or '', '^(%d+)-(%d+)$')
  seconds.muted_first, seconds.muted_last = tonumber(muted_first), tonumber(muted_last)
  local wanted = {}
  for i = 1, #given, 3 do wanted[#wanted + 1] = given[i] end
  read_seconds(seconds, wanted)
  local around = {}
  for i = 1, #given, 3 do
    local second = given[i]
    if seconds.dms[second] + seconds.room[second] + given[i + 1] + given[i + 2] > seconds.rate then
      for beside = second - seconds.length - 1, second + seconds.length + 1 do around[#around + 1] = beside end
    end
  end
  read_seconds(seconds, around)
  local writes = {}
  for i = 1, #given, 3 do
    local second, dms, room = given[i], given[i + 1], given[i + 2]
    if seconds.dms[second] + seconds.room[second] + dms + room > seconds.rate then
      heat(seconds, second, dms, room)
    else
      seconds.dms[second] = seconds.dms[second] + dms
      seconds.room[second] = seconds.room[second] + room
      seconds.dm_change = seconds.dm_change + dms
      seconds.room_change = seconds.room_change + room
    end
    writes[#writes + 1] = second
    if seconds.room[second] == 0 then
      writes[#writes + 1] = seconds.dms[second]
    else
      writes[#writes + 1] = string.format('%d %d', seconds.dms[second], seconds.room[second])
    end
  end
  seconds.writes = writes
  return seconds
end

local function put(writes, field, value)
  writes[#writes + 1] = field
  writes[#writes + 1] = value
end

local function expire_in(key, seconds)
  redis.call('EXPIRE', key, seconds)
end

-- Runs a variadic command in chunks that `unpack` takes.
local function call_in_pieces(command, key, values)
  local changed = 0
  for first = 1, #values, 1000 do
    changed = changed + redis.call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
  return changed
end

-- Adds members to a set, and its size to the counters. `known`: the size in the counters before, if any.
local function grow(key, members, known, field, writes, seconds_to_live)
  local added = call_in_pieces('SADD', key, members)
  if known then
    if added > 0 then put(writes, field, string.format('%.0f', known + added)) end
  else
    expire_in(key, seconds_to_live)
    put(writes, field, redis.call('SCARD', key))
  end
end

-- The counters of a day that the effects need: reading fewer is faster.
local function read_counters(key, day)
  local fields = { 'campus', 'touched' }
  for i = 1, #day[6], 2 do fields[#fields + 1] = day[6][i] end
  if day[7] > 0 then fields[#fields + 1] = 'uniq_senders' end
  if day[9] > 0 then fields[#fields + 1] = 'uniq_invite_accept_from' end
  if day[11] > 0 then
    fields[#fields + 1] = 'dm_sent'
    fields[#fields + 1] = 'room_sent'
    fields[#fields + 1] = 'muted_for_lb'
  end
  local held = {}
  for i, value in ipairs(redis.call('HMGET', key, unpack(fields))) do
    if value then held[fields[i]] = value end
  end
  return held
end

-- Plans the changes by the messages of one day.
local function prepare_messages(plan, key, given, limits, held)
  local seconds = guard(key, given, limits, held.muted_for_lb)
  local writes = plan.writes
  plan.seconds, plan.seconds_are_new = seconds, not held.dm_sent
  if not held.dm_sent or seconds.dm_change ~= 0 then
    put(writes, 'dm_sent', string.format('%.0f', (held.dm_sent or 0) + seconds.dm_change))
  end
  if not held.room_sent or seconds.room_change ~= 0 then
    put(writes, 'room_sent', string.format('%.0f', (held.room_sent or 0) + seconds.room_change))
  end
  if seconds.muted_first then
    local interval = string.format('%.0f-%.0f', seconds.muted_first, seconds.muted_last)
    if interval ~= held.muted_for_lb then put(writes, 'muted_for_lb', interval) end
  end
end

-- Plans the changes of one day. Only reads, and adds to sets, which may be repeated.
local function prepare(keys, day, limits)
  local key, increments = keys[day[1]], day[6]
  local held = read_counters(key, day)
  local plan = { key = key, is_new = not held.campus, writes = {} }
  local writes = plan.writes
  if plan.is_new then put(writes, 'campus', day[3]) end
  if held.touched ~= '1' then put(writes, 'touched', 1) end
  for i = 1, #increments, 2 do
    put(writes, increments[i], string.format('%.0f', (held[increments[i]] or 0) + increments[i + 1]))
  end
  if day[7] > 0 then grow(keys[day[7]], day[8], held.uniq_senders, 'uniq_senders', writes, day[4]) end
  if day[9] > 0 then
    grow(keys[day[9]], day[10], held.uniq_invite_accept_from, 'uniq_invite_accept_from', writes, day[4])
  end
  if day[11] > 0 then prepare_messages(plan, keys[day[11]], day[12], limits, held) end
  return plan
end

local function perform(plan, day)
  if plan.seconds then
    local writes = plan.seconds.writes
    for first = 1, #writes, 1000 do
      redis.call('HSET', plan.seconds.key, unpack(writes, first, math.min(first + 999, #writes)))
    end
    if plan.seconds_are_new then expire_in(plan.seconds.key, day[4]) end
  end
  if #plan.writes > 0 then redis.call('HSET', plan.key, unpack(plan.writes)) end
  if plan.is_new then expire_in(plan.key, day[4]) end
end

local function add_users(keys, plans, days)
  local users = {}
  for i, plan in ipairs(plans) do
    if plan.is_new then
      local key = days[i][5]
      users[key] = users[key] or { live = days[i][4] }
      users[key][#users[key] + 1] = string.match(days[i][2], ':(.*)$')
    end
  end
  for key, added in pairs(users) do
    call_in_pieces('SADD', keys[key], added)
    expire_in(keys[key], added.live)
  end
end

local function mark(keys, plans, days)
  local marks = {}
  for i, plan in ipairs(plans) do
    if #plan.writes > 0 then marks[#marks + 1] = days[i][2] end
  end
  if #marks == 0 then return 0 end
  local number = redis.call('HINCRBY', keys[1], 'changes', #marks) - #marks
  local pairs_of = {}
  for i, name in ipairs(marks) do
    pairs_of[2 * i - 1], pairs_of[2 * i] = string.format('%.0f', number + i), name
  end
  call_in_pieces('ZADD', keys[2], pairs_of)
  return #marks
end

-- First runs everything that can fail and may be repeated; then writes the counters and calls `finish`, which cannot
-- fail.
local function apply_effects(keys, message, finish)
  local limits, late, days = message[1], message[2], message[3]
  local plans = {}
  for i, day in ipairs(days) do plans[i] = prepare(keys, day, limits) end
  add_users(keys, plans, days)
  local changed = mark(keys, plans, days)
  for i, plan in ipairs(plans) do perform(plan, days[i]) end
  for i = 1, #late, 2 do redis.call('HINCRBY', keys[1], 'late:' .. late[i], late[i + 1]) end
  finish()
  return { 'ok', changed }
end

local function accrue(keys, args)
  local message = cmsgpack.unpack(args[1])
  local stream, expected, cursor, parked = message[4], message[5], message[6], message[7]
  local present = redis.call('HGET', keys[1], stream) or ''
  if present ~= expected then
    if present ~= '' then redis.call('HSET', keys[1], stream, present) end
    return { 'cursor', present }
  end
  for i = 1, #parked, 3 do
    redis.call('LLEN', keys[parked[i]])
    redis.call('SADD', keys[3], parked[i + 1])
  end
  return apply_effects(keys, message, function()
    for i = 1, #parked, 3 do call_in_pieces('RPUSH', keys[parked[i]], parked[i + 2]) end
    redis.call('HSET', keys[1], stream, cursor)
  end)
end

local function release(keys, args)
  local message = cmsgpack.unpack(args[1])
  local user, first, count = message[4], message[5], message[6]
  if redis.call('LINDEX', keys[4], 0) ~= first then return { 'gone' } end
  return apply_effects(keys, message, function()
    redis.call('LTRIM', keys[4], count, -1)
    if redis.call('EXISTS', keys[4]) == 0 then redis.call('SREM', keys[3], user) end
  end)
end

local function unmark(keys, args)
  local names, settled = {}, {}
  for i = 1, #args, 2 do names[#names + 1] = args[i] end
  for first = 1, #names, 1000 do
    local numbers = redis.call('ZMSCORE', keys[1], unpack(names, first, math.min(first + 999, #names)))
    for i, number in ipairs(numbers) do
      local at = first + i - 1
      if number and tonumber(number) == tonumber(args[2 * at]) then settled[#settled + 1] = names[at] end
    end
  end
  return call_in_pieces('ZREM', keys[1], settled)
end

local function is_behind(id, cursor)
  local milliseconds, seq = stream_id(id)
  local cursor_milliseconds, cursor_seq = stream_id(cursor)
  return milliseconds > cursor_milliseconds or (milliseconds == cursor_milliseconds and seq > cursor_seq)
end

local function discard(keys, args)
  local cursor = redis.call('HGET', keys[2], args[1]) or '0-0'
  local kept = 0
  for i = 3, #args, 3 do
    if is_behind(args[i], cursor) then
      redis.call(
        'XADD', keys[1], 'MAXLEN', '~', args[2], '*',
        'stream', args[1], 'id', args[i], 'reason', args[i + 1], 'payload', args[i + 2]
      )
      cursor, kept = args[i], kept + 1
    end
  end
  redis.call('HSET', keys[2], args[1], cursor)
  return kept
end

local function map_of(pairs_of)
  local found = {}
  for i = 1, #pairs_of, 2 do found[pairs_of[i]] = pairs_of[i + 1] end
  return found
end

local function group_of(stream, name)
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    local found = map_of(group)
    if found.name == name then return found end
  end
end

local function join(keys, args)
  if redis.call('EXISTS', keys[1]) == 0 then return {} end
  local group = group_of(keys[1], args[1])
  if not group then
    local stream = map_of(redis.call('XINFO', 'STREAM', keys[1]))
    local trimmed = (stream['entries-added'] or stream.length) - stream.length
    redis.call('XGROUP', 'CREATE', keys[1], args[1], '0-0', 'ENTRIESREAD', trimmed)
    return { '0-0', trimmed }
  end
  return { group['last-delivered-id'], group['entries-read'] or 0 }
end

local function advance(keys, args)
  if redis.call('EXISTS', keys[1]) == 0 then return 0 end
  local group = group_of(keys[1], args[1])
  if not group or group['last-delivered-id'] ~= args[2] then return 0 end
  local applied = (group['entries-read'] or 0) + tonumber(args[4])
  redis.call('XGROUP', 'SETID', keys[1], args[1], args[3], 'ENTRIESREAD', string.format('%.0f', applied))
  return 1
end

local function backlog(keys, args)
  if redis.call('EXISTS', keys[1]) == 0 then return { 0, 0, '' } end
  local group = group_of(keys[1], args[1])
  local applied, at = 0, '-'
  if group then applied, at = group['entries-read'] or 0, '(' .. group['last-delivered-id'] end
  local oldest = redis.call('XRANGE', keys[1], at, '+', 'COUNT', 1)[1]
  if not oldest then return { applied, 0, '' } end
  local stream = map_of(redis.call('XINFO', 'STREAM', keys[1]))
  return { applied, (group and group.lag) or stream.length, oldest[1] }
end

local function attend(keys, args)
  local now = redis.call('TIME')
  local milliseconds = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
  redis.call('ZADD', keys[1], string.format('%.0f', milliseconds), args[1])
  redis.call('ZREMRANGEBYSCORE', keys[1], '-inf', string.format('(%.0f', milliseconds - tonumber(args[2])))
  -- Heartbeats from before the clock was set back; live workers send new ones.
  redis.call('ZREMRANGEBYSCORE', keys[1], string.format('(%.0f', milliseconds), '+inf')
  return redis.call('ZRANGE', keys[1], 0, -1)
end

-- An entry that is refused must not be overtaken by a later one, so an error ends the call.
local function number(keys, args)
  local last = redis.call('EXISTS', keys[1]) == 1 and stream_id(last_id(keys[1])) or 0
  for _, entry in ipairs(cmsgpack.unpack(args[2])) do
    if entry[1] > last then
      last = entry[1]
      redis.call('XADD', keys[1], 'MAXLEN', '~', args[1], string.format('%.0f-0', last), unpack(entry[2]))
    end
  end
  return string.format('%.0f', last)
end

redis.register_function('laurels_accrue', accrue)
redis.register_function('laurels_release', release)
redis.register_function('laurels_unmark', unmark)
redis.register_function('laurels_discard', discard)
redis.register_function('laurels_join', join)
redis.register_function('laurels_advance', advance)
redis.register_function({ function_name = 'laurels_backlog', callback = backlog, flags = { 'no-writes' } })
redis.register_function('laurels_attend', attend)
redis.register_function('laurels_number', number)
