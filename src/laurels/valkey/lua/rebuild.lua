-- Fences, and writes that bypass the rules of submissions: switching windows, placing entries, renaming members.
--
-- A fence keeps all other writers off the board while a rebuilt board is put in its place. It has one owner, and
-- lapses by itself in case the owner dies.
--
-- laurels_fence      KEYS 1 board, 2 journal;  ARGV 1 version, 2 token, 3 milliseconds, 4 floor
--   sets or prolongs the fence, and makes the next ids of the journal lie above the floor
--   -> {'version', current} as laurels_submit; {'fenced'} if another owner has the fence;
--      {'ok', id of the last entry that the journal ever had}
--
-- laurels_switch     KEYS 1 board, 2… from, to, from, to, …
--                    ARGV 1 token, 2 milliseconds, 3… for each pair seconds to live or 0
--   renames each `from` to `to`; deletes `to` if there is no `from`. Prolongs the fence.
--   -> {'lapsed'} if this token has no fence, and nothing was done; {'ok'}
--
-- laurels_unfence    KEYS 1 board;  ARGV 1 token, 2 metadata: 1 if entries may have some
--   removes the fence -> {'lapsed'} as above; {'ok'}
--
-- laurels_place      KEYS 1 board, 2 journal, 3… one window
--                    ARGV 1 header {shape, version, journal, seconds, metadata: each entry's, or ''}, 2 journal entry,
--                    3… place, member, place, member, …
--   sets the entries of these members, also of those that have one; no member may occur twice
--   -> {'version', current} or {'fenced'} as laurels_submit; {'ok', number of entries in the window}
--
-- laurels_rename     KEYS 1 board, 2… windows;  ARGV 1 header {shape, version}, 2 member, 3 its new name
--   keeps the member's entry under the new name, and deletes its metadata
--   -> {'version', current} or {'fenced'} as laurels_submit; {'ok', number of windows that had the member}

-- Whether the board has a fence of this token that has not lapsed.
local function is_held(board, token)
  local fence = redis.call('HGET', board, 'fence')
  return is_fenced(fence) and string.match(fence, ' (.*)$') == token
end

local function hold(board, token, milliseconds)
  local now = redis.call('TIME')
  local lapses = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000) + tonumber(milliseconds)
  redis.call('HSET', board, 'fence', string.format('%.0f %s', lapses, token))
end

-- The reply for a caller with another version, or behind a fence; nil if it may write.
local function refusal_of(key, version)
  local known, fence = unpack(redis.call('HMGET', key, 'version', 'fence'))
  if tonumber(known) ~= tonumber(version) then return { 'version', known or '' } end
  if is_fenced(fence) then return { 'fenced' } end
end

local function fence(keys, args)
  if not is_held(keys[1], args[2]) then
    local refusal = refusal_of(keys[1], args[1])
    if refusal then return refusal end
  end
  hold(keys[1], args[2], args[3])
  if redis.call('EXISTS', keys[2]) == 0 then
    redis.call('XGROUP', 'CREATE', keys[2], 'laurels', '$', 'MKSTREAM')
    redis.call('XGROUP', 'DESTROY', keys[2], 'laurels')
  end
  raise(keys[2], args[4])
  return { 'ok', last_id(keys[2]) }
end

local function switch(keys, args)
  if not is_held(keys[1], args[1]) then return { 'lapsed' } end
  hold(keys[1], args[1], args[2])
  for i = 2, #keys, 2 do
    local from, to, seconds = keys[i], keys[i + 1], tonumber(args[i / 2 + 2])
    redis.call('UNLINK', to)
    if redis.call('EXISTS', from) == 1 then
      redis.call('RENAME', from, to)
      if seconds > 0 then redis.call('EXPIRE', to, seconds) else redis.call('PERSIST', to) end
    end
  end
  return { 'ok' }
end

local function unfence(keys, args)
  if not is_held(keys[1], args[1]) then return { 'lapsed' } end
  redis.call('HDEL', keys[1], 'fence')
  if args[2] == '1' then redis.call('HSET', keys[1], 'metadata', 1) end
  return { 'ok' }
end

local function place_entries(keys, args)
  local header = cmsgpack.unpack(args[1])
  local refusal = refusal_of(keys[1], header.version)
  if refusal then return refusal end
  local board = board_of(header.shape)
  local window = windows_of(board, keys, 3)[1]
  local members, changes = {}, {}
  for i = 4, #args, 2 do members[#members + 1] = args[i] end
  local old = layout.read(board, window, members)
  for i, member in ipairs(members) do
    local new = layout.entry(board, args[2 * i + 1])
    changes[i] = { member = member, old = old[member], new = new, metadata = header.metadata[i] or '' }
  end
  write(board, window, changes)
  write_metadata(window, changes)
  expire(board, window, header.seconds)
  redis.call('HSET', keys[1], 'metadata', 1)
  append(header.journal, keys[2], args[2], '')
  return { 'ok', redis.call('ZCARD', window.entries) }
end

local function rename(keys, args)
  local header = cmsgpack.unpack(args[1])
  local refusal = refusal_of(keys[1], header.version)
  if refusal then return refusal end
  local board = board_of(header.shape)
  local member, named = args[2], args[3]
  local found = 0
  for _, window in ipairs(windows_of(board, keys, 2)) do
    local entry = layout.read(board, window, { member })[member]
    if entry then
      found = found + 1
      -- Written before the old one is removed: a window that becomes empty loses its expiry.
      layout.write(board, window, { { member = named, new = entry } })
      layout.remove(board, window, { { member = member, old = entry } })
    end
    redis.call('HDEL', window.metadata, member)
  end
  return { 'ok', found }
end

redis.register_function('laurels_fence', fence)
redis.register_function('laurels_switch', switch)
redis.register_function{ function_name = 'laurels_unfence', callback = unfence, flags = { 'allow-oom' } }
redis.register_function('laurels_place', place_entries)
redis.register_function{ function_name = 'laurels_rename', callback = rename, flags = { 'allow-oom' } }
