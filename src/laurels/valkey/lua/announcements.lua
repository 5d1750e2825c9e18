-- Names that background work is to look at, in sorted sets. The score is minus the microsecond of the announcement;
-- or, for a name that was looked at since, the microsecond at which to look again.
--
-- laurels_announce   KEYS 1 the set;  ARGV 1 'NX' to leave names that it has as they are, or '', 2… names
--   -> how many of the names are new
--
-- laurels_looked_at  KEYS 1 the set;  ARGV for each name: name, the score that it had, and the next one, or '' to remove
--                    the name
--   skips a name with another score: it was announced again meanwhile
--   -> how many of the names were changed

local TRIPLES = 3

local function announce(keys, args)
  local now = redis.call('TIME')
  local score = string.format('-%s%06d', now[1], tonumber(now[2]))
  local pairs_of = {}
  for i = 2, #args do
    pairs_of[#pairs_of + 1] = score
    pairs_of[#pairs_of + 1] = args[i]
  end
  local added = 0
  for from = 1, #pairs_of, SPREAD do
    local some = { unpack(pairs_of, from, math.min(from + SPREAD - 1, #pairs_of)) }
    if args[1] == 'NX' then table.insert(some, 1, 'NX') end
    added = added + redis.call('ZADD', keys[1], unpack(some))
  end
  return added
end

local function looked_at(keys, args)
  local changed = 0
  for i = 1, #args, TRIPLES do
    local name, seen, following = args[i], args[i + 1], args[i + 2]
    local known = redis.call('ZMSCORE', keys[1], name)[1]
    if known and tonumber(known) == tonumber(seen) then
      if following == '' then
        redis.call('ZREM', keys[1], name)
      else
        redis.call('ZADD', keys[1], following, name)
      end
      changed = changed + 1
    end
  end
  return changed
end

redis.register_function{ function_name = 'laurels_announce', callback = announce, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'laurels_looked_at', callback = looked_at, flags = { 'allow-oom' } }
