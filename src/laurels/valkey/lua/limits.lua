-- laurels_hit: counts requests against a rate limit, by a sliding window: the present stretch of time counts whole,
-- the one before by the part of it that the window still covers.
--
-- KEYS  1… limit  string  'start before now': milliseconds at which the present stretch began, the hits of the stretch
--                         before it, and its own
-- ARGV  1 most hits in a stretch, 2 length of a stretch in milliseconds
-- Returns for each key {1 if the hit is allowed and counted, else 0; before; now; milliseconds left of the present
-- stretch}

local function hit_one(key, most, length, moment)
  local start, before, now = string.match(redis.call('GET', key) or '', '^(%d+) (%d+) (%d+)$')
  start, before, now = tonumber(start) or moment, tonumber(before) or 0, tonumber(now) or 0
  local elapsed = moment - start
  if elapsed < 0 or elapsed >= 2 * length then  -- the clock was set back, or the last hit is long ago
    start, before, now = moment, 0, 0
  elseif elapsed >= length then
    start, before, now = start + length, now, 0
  end
  local left = length - (moment - start)
  local is_allowed = math.floor(before * left / length) + now < most
  if is_allowed then
    now = now + 1
    redis.call('SET', key, string.format('%.0f %d %d', start, before, now), 'PX', left + length)
  end
  return { is_allowed and 1 or 0, before, now, left }
end

local function hit(keys, args)
  local most, length = tonumber(args[1]), tonumber(args[2])
  local time = redis.call('TIME')
  local moment = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local replies = {}
  for i, key in ipairs(keys) do replies[i] = hit_one(key, most, length, moment) end
  return replies
end

redis.register_function('laurels_hit', hit)
