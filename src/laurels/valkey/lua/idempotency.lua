-- Idempotency keys of requests: who works on a request, and its response. And sessions of the console.
--
-- A record is msgpack {fingerprint, owner, until, response, report, form, member}: the fingerprint of the request, ''
-- while it is unknown; the worker that has claimed it, and the second of the server's clock until which the claim holds;
-- and the response, '' until there is one. laurels_submit writes the record of a single score in the call that submits
-- it: the report in place of the response, the form of its places, and the member, by which an erasure finds it.
--
-- laurels_claim     KEYS 1 board, 2…4 once (hashes of records by key, in three generations: see generations.lua)
--                   ARGV 1 key, 2 fingerprint or '', 3 owner, 4 seconds that the claim holds
--   -> {'mine'}                 the claim is the caller's; an earlier one lapsed, or was given back
--      {'busy'}                 another owner has the claim
--      {'other'}                the key belongs to a request with another fingerprint, or to a single score
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

-- In seconds. A claim that ends later than this was made before the clock was set back.
local LONGEST_CLAIM = 30

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

-- A definition that changed while the board was empty may write places in another form.
local function form_of_places(header)
  return header.shape[1] .. ' ' .. header.shape[3]
end

-- Marks the submissions of a call that their idempotency keys keep from running: in `refused` as 'answered', 'busy' or
-- 'other', as the head of submit.lua says. Returns the reports of those that were answered, by their numbers.
local function answered_before(header, keys, first, refused)
  local numbers, asked, reports, taken = {}, {}, {}, {}
  for i, fingerprint in ipairs(header.fingerprints) do
    if fingerprint ~= '' then
      numbers[#numbers + 1] = i
      asked[#asked + 1] = header.ids[i]
    end
  end
  local now = seconds_now()
  for place = first, first + 2 do
    for at, packed in ipairs(redis.call('HMGET', keys[place], unpack(asked))) do
      if packed then
        local i, known = numbers[at], cmsgpack.unpack(packed)
        local is_answered = known[5] and known[6] == form_of_places(header)
        if differ(known[1], header.fingerprints[i]) then
          refused[i] = 'other'
        elseif is_answered or known[4] ~= '' then
          refused[i], reports[i] = 'answered', is_answered and known[5] or { known[4] }
        elseif known[3] > now and known[3] <= now + LONGEST_CLAIM then
          refused[i] = 'busy'
        end
      end
    end
  end
  for at, i in ipairs(numbers) do
    local key, fingerprint = asked[at], header.fingerprints[i]
    taken[key] = taken[key] or fingerprint
    if taken[key] ~= fingerprint then refused[i] = 'other' end
  end
  return reports
end

-- Records the reports of the submissions with a fingerprint that ran now, or earlier without a record.
local function record_answers(header, keys, first, state, refused, reports, args)
  local records = {}
  for i, fingerprint in ipairs(header.fingerprints) do
    if fingerprint ~= '' and (not refused[i] or refused[i] == 'duplicate') then
      records[#records + 1] = header.ids[i]
      records[#records + 1] = cmsgpack.pack({
        fingerprint, '', 0, '', reports[i], form_of_places(header), args[2 * i + 3],
      })
    end
  end
  if #records == 0 then return end
  local key = generation(keys, first, 'once', state, seconds_now(), PERIODS.once)
  redis.call('HSET', key, unpack(records))
  -- Each time: a hash that lost its last record begins again without an expiry.
  redis.call('EXPIRE', key, MEMORY_SECONDS, 'NX')
end

local function claim(keys, args)
  local now, seconds = seconds_now(), tonumber(args[4])
  local known, held_in = record_of(keys, 2, 4, args[1])
  local fingerprint = args[2]
  if known then
    if known[5] or differ(known[1], fingerprint) then return { 'other' } end
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
