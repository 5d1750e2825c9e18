-- A request that its client gave a key: who works on it, and what it was answered.
--
-- A record is msgpack {fingerprint, owner, until, answer}: what the request was ('' while that is not known
-- yet), who works on it, up to which second of the server's clock it is theirs alone, and the answer, '' until
-- there is one.
--
-- laurels_claim     KEYS 1 board, 2…4 once (hashes of records by key, in three generations: see memory.lua)
--                   ARGV 1 key, 2 fingerprint or '', 3 owner, 4 seconds that the claim holds
--   -> {'mine'}                 go ahead; whoever worked on it before is gone, or gave it back
--      {'busy'}                 another one works on it
--      {'other'}                the key belongs to a request with another fingerprint
--      {'done', fingerprint, answer}
--   A fingerprint that is not known differs from none.
--
-- laurels_settle    KEYS 1…3 once
--                   ARGV 1 key, 2 owner, 3 what becomes of it, 4 fingerprint or '', 5 answer, or seconds
--   'done'    it was answered: the answer is kept
--   'open'    nobody knows whether it was done: the same request may claim it again
--   'forget'  nothing was done: any request may have the key
--   'renew'   it goes on for so many seconds
--   -> 1, or 0 when another one has claimed it since; then nothing is changed
--
-- laurels_session   KEYS 1 a session of the console;  ARGV 1 what it stands for, 2 seconds
--   begins the session, also when Valkey is out of memory: an operator who frees some has to sign in
--   -> 1

-- A record, and the key that has it.
local function record_of(keys, first, last, field)
  for i = first, last do
    local packed = redis.call('HGET', keys[i], field)
    if packed then return cmsgpack.unpack(packed), keys[i] end
  end
end

local function differ(left, right)
  return left ~= '' and right ~= '' and left ~= right
end

local function claim(keys, args)
  local now, seconds = seconds_now(), tonumber(args[4])
  local known, held_in = record_of(keys, 2, 4, args[1])
  local fingerprint = args[2]
  if known then
    if differ(known[1], fingerprint) then return { 'other' } end
    if known[4] ~= '' then return { 'done', known[1], known[4] } end
    -- A claim that ends later than any may is of a clock that was set back since.
    if known[3] > now and known[3] <= now + seconds then return { 'busy' } end
    if fingerprint == '' then fingerprint = known[1] end
  end
  local key = generation(keys, 2, 'once', redis.call('HGET', keys[1], 'once'), now, PERIODS.once)
  redis.call('HSET', key, args[1], cmsgpack.pack({ fingerprint, args[3], now + seconds, '' }))
  redis.call('EXPIRE', key, MEMORY_SECONDS, 'NX')
  if held_in and held_in ~= key then redis.call('HDEL', held_in, args[1]) end
  return { 'mine' }
end

local function settle(keys, args)
  local known, key = record_of(keys, 1, 3, args[1])
  if not known or known[2] ~= args[2] then return 0 end
  local how = args[3]
  if how == 'forget' then
    redis.call('HDEL', key, args[1])
    return 1
  end
  local fingerprint = args[4] ~= '' and args[4] or known[1]
  local record = { fingerprint, args[2], 0, '' }
  if how == 'done' then record[4] = args[5] end
  if how == 'renew' then record[3] = seconds_now() + tonumber(args[5]) end
  redis.call('HSET', key, args[1], cmsgpack.pack(record))
  return 1
end

local function session(keys, args)
  redis.call('SET', keys[1], args[1], 'EX', args[2])
  return 1
end

redis.register_function('laurels_claim', claim)
redis.register_function{ function_name = 'laurels_settle', callback = settle, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'laurels_session', callback = session, flags = { 'allow-oom' } }
