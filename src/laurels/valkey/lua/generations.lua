-- Remembers ids, calls and idempotency keys of a board for a while.
--
-- Each kind has three generations, one key each. One is written to; all three are read. When a generation has been
-- written to for a period, the oldest is deleted and becomes the next one to write to. So everything is remembered
-- for two to three periods, and nothing is removed one by one.
--
-- Generations age by the server's clock alone. If the clock steps ahead, by any time, one generation ends early; if it
-- steps back, the present one begins again.
--
-- The board's hash has a field 'NUMBER SECONDS' for each kind: the generation written to, and when it began.

-- In seconds. Two periods are 25 hours, of which 24 are documented; and 12 minutes, of which 10 are.
local PERIODS = { ids = 45000, once = 45000, calls = 360 }
-- The expiry of a generation, for boards without further writes.
local MEMORY_SECONDS = 2 * 86400

local function seconds_now()
  return tonumber(redis.call('TIME')[1])
end

local function read_generation(state)
  if not state then return nil end
  local number, began = string.match(state, '^(%d) (%d+)$')
  return tonumber(number), tonumber(began)
end

-- The key of the generation to write to, and whether it is new. `state`: the field of the board's hash; `first`: the
-- place of the first generation in `keys`.
local function generation(keys, first, name, state, now, period)
  local number, began = read_generation(state)
  local age = number and now - began
  if age and age >= 0 and age < period then return keys[first + number], false end
  if not number then
    number = 0
  elseif age >= period then
    number = (number + 1) % 3
    redis.call('UNLINK', keys[first + number])
  end
  redis.call('HSET', keys[1], name, string.format('%d %.0f', number, now))
  return keys[first + number], true
end

local function remembered(keys, names)
  local found = {}
  local asked = {}
  for _, name in ipairs(names) do
    if name ~= '' then asked[#asked + 1] = name end
  end
  for _, key in ipairs(keys) do
    for i, is_known in ipairs(gather('SMISMEMBER', key, asked)) do
      if is_known == 1 then found[asked[i]] = true end
    end
  end
  return found
end
