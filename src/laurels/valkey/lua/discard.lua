-- Deletes large keys in chunks. These functions free memory, so they also run when memory is full.
--
-- laurels_set_aside  KEYS 1 board, then n keys, then a new name for each
--                    ARGV 1 entries from which a key is large, 2 seconds, 3 a field of the board, 4 the value that it
--                    must have; '' and '' for no condition
--   deletes these keys, except windows that were taken over from another program. Large keys are renamed instead, and
--   expire after these seconds.
--   -> {'ok', new names of large keys…}; {'version', current} if the field has another value: nothing was done
--
-- laurels_list_aside KEYS 1 the list of renamed keys;  ARGV 1… names
--   -> how many of the names are new in the list
--
-- laurels_empty      KEYS 1 a renamed key;  ARGV 1 cursor, '0' at first, 2 number of entries
--   removes about so many entries -> the next cursor; '' when none is left
--
-- laurels_retire_generation   KEYS 1 board, 2…4 generations (see generations.lua), 5 a new name
--                    ARGV 1 'ids' or 'once', 2 and 3 as 1 and 2 of laurels_set_aside
--   sets the oldest generation aside from half an hour before its end, so that no other call frees a large key
--   -> as laurels_set_aside

-- An entry of a stream holds a whole call, so it counts as a hundred entries.
local SIZES = { zset = 'ZCARD', hash = 'HLEN', set = 'SCARD', stream = 'XLEN' }
local WEIGHT = { stream = 100 }

local function size_of(key)
  local kind = redis.call('TYPE', key).ok
  local length = SIZES[kind] and redis.call(SIZES[kind], key) or 0
  return length * (WEIGHT[kind] or 1), kind
end

local function set_aside(keys, args)
  if args[3] ~= '' and redis.call('HGET', keys[1], args[3]) ~= args[4] then
    return { 'version', redis.call('HGET', keys[1], 'version') or '' }
  end
  local aside, half = { 'ok' }, (#keys - 1) / 2
  for i = 2, half + 1 do
    if args[3] ~= '' and is_adopted(keys[1], keys[i]) then -- it outlives the board
    elseif size_of(keys[i]) < tonumber(args[1]) then
      redis.call('UNLINK', keys[i])
    else
      local name = keys[half + i]
      redis.call('RENAME', keys[i], name)
      redis.call('EXPIRE', name, args[2])
      aside[#aside + 1] = name
    end
  end
  return aside
end

local EARLY = 1800

local function retire_generation(keys, args)
  local number, began = read_generation(redis.call('HGET', keys[1], args[1]))
  if not number or seconds_now() - began < PERIODS[args[1]] - EARLY then return { 'ok' } end
  return set_aside({ keys[1], keys[2 + (number + 1) % 3], keys[5] }, { args[2], args[3], '', '' })
end

local function list_aside(keys, args)
  return redis.call('SADD', keys[1], unpack(args))
end

local function empty(keys, args)
  local key, cursor, count = keys[1], args[1], tonumber(args[2])
  local size, kind = size_of(key)
  if size <= count then
    redis.call('UNLINK', key)
    return ''
  end
  if kind == 'zset' then
    redis.call('ZREMRANGEBYRANK', key, 0, count - 1)
    return cursor
  end
  if kind == 'set' then
    redis.call('SPOP', key, count)
    return cursor
  end
  if kind == 'stream' then
    redis.call('XTRIM', key, 'MAXLEN', '=', math.floor((size - count) / WEIGHT.stream))
    return cursor
  end
  local following, found = unpack(redis.call('HSCAN', key, cursor, 'COUNT', count))
  local fields = {}
  for i = 1, #found, 2 do fields[#fields + 1] = found[i] end
  if #fields > 0 then redis.call('HDEL', key, unpack(fields)) end
  return following
end

redis.register_function{ function_name = 'laurels_set_aside', callback = set_aside, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'laurels_list_aside', callback = list_aside, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'laurels_empty', callback = empty, flags = { 'allow-oom' } }
redis.register_function{
  function_name = 'laurels_retire_generation', callback = retire_generation, flags = { 'allow-oom' },
}
