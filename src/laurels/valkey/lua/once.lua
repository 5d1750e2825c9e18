-- A request that its client gave a key: who works on it, and what it was answered.
--
-- A record is msgpack {fingerprint, owner, until, answer}: what the request was ('' while that is not known
-- yet), who works on it, up to which second of the server's clock it is theirs alone, and the answer, '' until
-- there is one.
--
-- laurels_claim     KEYS 1 once (hash of records by key), this day;  2 the same, the day before
--                   ARGV 1 key, 2 fingerprint or '', 3 owner, 4 seconds that the claim holds
--   -> {'mine'}                 go ahead; whoever worked on it before is gone, or gave it back
--      {'busy'}                 another one works on it
--      {'other'}                the key belongs to a request with another fingerprint
--      {'done', fingerprint, answer}
--   A fingerprint that is not known differs from none.
--
-- laurels_settle    KEYS 1 once, as it was claimed in
--                   ARGV 1 key, 2 owner, 3 what becomes of it, 4 fingerprint or '', 5 answer, or seconds
--   'done'    it was answered: the answer is kept
--   'open'    nobody knows whether it was done: the same request may claim it again
--   'forget'  nothing was done: any request may have the key
--   'renew'   it goes on for so many seconds
--   -> 1, or 0 when another one has claimed it since; then nothing is changed

local ONCE_SECONDS = 2 * 86400

local function record_of(key, field)
  local packed = server.call('HGET', key, field)
  return packed and cmsgpack.unpack(packed)
end

local function differ(left, right)
  return left ~= '' and right ~= '' and left ~= right
end

local function claim(keys, args)
  local now = tonumber(server.call('TIME')[1])
  local known = record_of(keys[1], args[1]) or record_of(keys[2], args[1])
  local fingerprint = args[2]
  if known then
    if differ(known[1], fingerprint) then return { 'other' } end
    if known[4] ~= '' then return { 'done', known[1], known[4] } end
    if known[3] > now then return { 'busy' } end
    if fingerprint == '' then fingerprint = known[1] end
  end
  local record = { fingerprint, args[3], now + tonumber(args[4]), '' }
  server.call('HSET', keys[1], args[1], cmsgpack.pack(record))
  server.call('EXPIRE', keys[1], ONCE_SECONDS, 'NX')
  return { 'mine' }
end

local function settle(keys, args)
  local known = record_of(keys[1], args[1])
  if not known or known[2] ~= args[2] then return 0 end
  local how = args[3]
  if how == 'forget' then
    server.call('HDEL', keys[1], args[1])
    return 1
  end
  local fingerprint = args[4] ~= '' and args[4] or known[1]
  local record = { fingerprint, args[2], 0, '' }
  if how == 'done' then record[4] = args[5] end
  if how == 'renew' then record[3] = tonumber(server.call('TIME')[1]) + tonumber(args[5]) end
  server.call('HSET', keys[1], args[1], cmsgpack.pack(record))
  return 1
end

server.register_function('laurels_claim', claim)
server.register_function('laurels_settle', settle)
