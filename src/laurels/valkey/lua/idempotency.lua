-- Idempotency keys of requests: who works on a request, and its response. And sessions of the console.
--
-- A record is msgpack {fingerprint, owner, until, response}: the fingerprint of the request, '' while it is unknown;
-- the worker that has claimed it, and the second of the server's clock until which the claim holds; and the response,
-- '' until there is one.
--
-- laurels_claim     KEYS 1 board, 2…4 once (hashes of records by key, in three generations: see generations.lua)
--                   ARGV 1 key, 2 fingerprint or '', 3 owner, 4 seconds that the claim holds
--   -> {'mine'}                 the claim is the caller's; an earlier one lapsed, or was given back
--      {'busy'}                 another owner has the claim
--      {'other'}                the key belongs to a request with another fingerprint
--      {'done', fingerprint, response}
--   The fingerprint '' equals every other.
--
-- laurels_settle    KEYS 1…3 once
--                   ARGV 1 key, 2 owner, 3 what to do, 4 fingerprint or '', 5 response, or seconds
--   'done'    store the response
--   'open'    it is unknown whether the request was executed: the same request may claim the key again
--   'forget'  the request was not executed: any request may claim the key
--   'renew'   prolong the claim by these seconds
--   -> 1; 0 if another owner has claimed the key since, and nothing was changed
--
-- laurels_session   KEYS 1 a session of the console;  ARGV 1 its value, 2 seconds
--   begins a session, even when memory is full: an operator has to sign in to free some
--   -> 1

-- The record of a request, and the generation that has it.
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
    -- A claim that ends later than `seconds` allow was made before the clock was set back.
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
