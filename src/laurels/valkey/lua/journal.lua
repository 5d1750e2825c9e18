-- Functions on the journal's stream, and on the calls that it records.
--
-- laurels_confirm    KEYS 1 board, 2… calls (sets, as in laurels_submit);  ARGV 1… ids of calls
--   -> how many of these calls are not known to have run
--   It writes, so that a WAITAOF or WAIT after it covers everything written before.
--
-- laurels_keeps      KEYS 1 journal;  ARGV 1 id of an entry, 2 its first value
--   -> 1 if the stream has this entry, else 0
--   It writes, as laurels_confirm does: a WAITAOF or WAIT after it covers this entry and all before it.
--
-- laurels_lift       KEYS 1 journal;  ARGV 1 floor, 2… ids of entries, oldest first
--   gives each of these entries an id above the floor and above every other; skips entries that do not exist
--   -> how many were moved
--
-- laurels_bury       KEYS 1 dead letters;  ARGV 1 id, 2… fields and values
--   adds an entry under its id, once; under a new id if the stream is past it
--   -> the id
--
-- laurels_exhume     KEYS 1 dead letters, 2 journal;  ARGV 1 id
--   moves an entry back to the end of the journal, without the field `why`
--   -> 1; 0 if it does not exist

local function confirm(keys, args)
  local known = remembered({ unpack(keys, 2) }, args)
  local missing = 0
  for _, call in ipairs(args) do
    if not known[call] then missing = missing + 1 end
  end
  local version = redis.call('HGET', keys[1], 'version')
  if version then redis.call('HSET', keys[1], 'version', version) end
  return missing
end

local function stream_id(text)
  local milliseconds, seq = string.match(text, '^(%d+)-(%d+)$')
  return tonumber(milliseconds), tonumber(seq)
end

local function last_id(key)
  local described = redis.call('XINFO', 'STREAM', key)
  for i = 1, #described, 2 do
    if described[i] == 'last-generated-id' then return described[i + 1] end
  end
end

-- Makes the next ids of an existing stream lie above the floor.
local function raise(key, floor)
  local milliseconds, seq = stream_id(last_id(key))
  local floor_milliseconds, floor_seq = stream_id(floor)
  if milliseconds < floor_milliseconds or (milliseconds == floor_milliseconds and seq < floor_seq) then
    redis.call('XSETID', key, floor)
  end
end

local function keeps(keys, args)
  local entry = redis.call('XRANGE', keys[1], args[1], args[1])[1]
  if not entry or entry[2][2] ~= args[2] then return 0 end
  redis.call('XSETID', keys[1], last_id(keys[1]))
  return 1
end

local function lift(keys, args)
  if redis.call('EXISTS', keys[1]) == 0 then return 0 end
  raise(keys[1], args[1])
  local lifted = 0
  for i = 2, #args do
    local entry = redis.call('XRANGE', keys[1], args[i], args[i])[1]
    if entry then
      redis.call('XADD', keys[1], '*', unpack(entry[2]))
      redis.call('XDEL', keys[1], args[i])
      lifted = lifted + 1
    end
  end
  return lifted
end

local function bury(keys, args)
  if redis.call('XRANGE', keys[1], args[1], args[1])[1] then return args[1] end
  local id = args[1]
  if redis.call('EXISTS', keys[1]) == 1 then
    local milliseconds, seq = stream_id(last_id(keys[1]))
    local own_milliseconds, own_seq = stream_id(id)
    if milliseconds > own_milliseconds or (milliseconds == own_milliseconds and seq >= own_seq) then id = '*' end
  end
  return redis.call('XADD', keys[1], id, unpack(args, 2))
end

local function exhume(keys, args)
  local entry = redis.call('XRANGE', keys[1], args[1], args[1])[1]
  if not entry then return 0 end
  local fields = {}
  for i = 1, #entry[2], 2 do
    if entry[2][i] ~= 'why' then
      fields[#fields + 1] = entry[2][i]
      fields[#fields + 1] = entry[2][i + 1]
    end
  end
  if #fields > 0 then redis.call('XADD', keys[2], '*', unpack(fields)) end
  return redis.call('XDEL', keys[1], args[1])
end

redis.register_function{ function_name = 'laurels_bury', callback = bury, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'laurels_confirm', callback = confirm, flags = { 'allow-oom' } }
redis.register_function('laurels_exhume', exhume)
redis.register_function{ function_name = 'laurels_keeps', callback = keeps, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'laurels_lift', callback = lift, flags = { 'allow-oom' } }
