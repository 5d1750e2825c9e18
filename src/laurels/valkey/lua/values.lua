-- Scores in Lua, without loss of bits.
--
-- A score of kind `number` is a Lua number (a double). It is printed with %.17g, because tostring keeps only 14
-- digits; commands print it without loss. A score of kind `int64` is eight sortable bytes, whose order is the order of
-- the scores: the big-endian bytes of score + 2^63. A Lua number holds 53 bits, so it is computed in two halves of 32.
--
-- A sorted set keeps a double for each member. An int64 is split into such a double and `low`: a score within 2^53 is
-- that double, and `low` is 0; any other is rounded down to a multiple of 2048, and `low` is the rest.
-- Never compare strings with `<`: Lua compares by the server's locale, not by bytes.

local TWO_21, TWO_31, TWO_32, TWO_53 = 2097152, 2147483648, 4294967296, 9007199254740992
-- A double that an int64 is rounded to, if it is no multiple of this.
local LOWS = 2048
-- A literal, because math and struct do not exist while a library loads.
local HUGE = 1 / 0

local function halves(bytes)
  local high, low = struct.unpack('>I4I4', bytes)
  return high, low
end

local function invert(bytes)
  local high, low = halves(bytes)
  return struct.pack('>I4I4', TWO_32 - 1 - high, TWO_32 - 1 - low)
end

local number = { zero = 0 }

function number.compare(left, right)
  if left < right then return -1 elseif left > right then return 1 end
  return 0
end

-- total - old + new, or nil out of range. In this order the total of a single part equals that part to the last bit.
function number.moved(total, old, new)
  local moved = (total - old) + new
  if moved ~= moved or moved == HUGE or moved == -HUGE then return nil end
  return moved + 0
end

-- The sum of these scores, added in their order, or nil out of range.
function number.total(scores)
  local total = number.zero
  for _, score in ipairs(scores) do total = total + score end
  return number.moved(total, 0, 0)
end

function number.distance_exceeds(left, right, limit)
  return math.abs(left - right) > limit
end

local int64 = { zero = '\128\0\0\0\0\0\0\0' }

function int64.compare(left, right)
  local left_high, left_low = halves(left)
  local right_high, right_low = halves(right)
  if left_high ~= right_high then return left_high < right_high and -1 or 1 end
  if left_low ~= right_low then return left_low < right_low and -1 or 1 end
  return 0
end

function int64.moved(total, old, new)
  local total_high, total_low = halves(total)
  local old_high, old_low = halves(old)
  local new_high, new_low = halves(new)
  local low = total_low + new_low - old_low
  local carry = math.floor(low / TWO_32)
  local high = total_high + new_high - old_high + carry
  if high < 0 or high >= TWO_32 then return nil end
  return struct.pack('>I4I4', high, low - carry * TWO_32)
end

-- As `number.total`. Only the sum itself must be in range: the halves of many scores add up without loss.
function int64.total(scores)
  local high, low = TWO_31, 0
  for _, score in ipairs(scores) do
    local score_high, score_low = halves(score)
    high, low = high + score_high - TWO_31, low + score_low
  end
  local carry = math.floor(low / TWO_32)
  high = high + carry
  if high < 0 or high >= TWO_32 then return nil end
  return struct.pack('>I4I4', high, low - carry * TWO_32)
end

-- `limit`: two halves {high, low}, because it may reach 2^63 - 1.
function int64.distance_exceeds(left, right, limit)
  if int64.compare(left, right) < 0 then left, right = right, left end
  local left_high, left_low = halves(left)
  local right_high, right_low = halves(right)
  local low = left_low - right_low
  local high = left_high - right_high
  if low < 0 then low, high = low + TWO_32, high - 1 end
  return high > limit[1] or (high == limit[1] and low > limit[2])
end

-- The double of an int64, and its `low`.
function int64.split(bytes)
  local high, low = halves(bytes)
  high = high - TWO_31
  if high >= -TWO_21 and high < TWO_21 then return high * TWO_32 + low, 0 end
  local rest = low % LOWS
  return high * TWO_32 + (low - rest), rest
end

function int64.join(double, rest)
  local high = math.floor(double / TWO_32)
  return struct.pack('>I4I4', high + TWO_31, double - high * TWO_32 + rest)
end

-- The double and the `low` of -score; of -2^63 they are 2^63 and 0.
function int64.negated(double, low)
  if low == 0 then return 0 - double, 0 end
  return -double - LOWS, LOWS - low
end

-- The sortable bytes of a double: its bits, changed so that they sort. Places have them.
local function pack_number(value)
  local bytes = struct.pack('>d', value)
  local high, low = halves(bytes)
  if high >= TWO_31 then return invert(bytes) end
  return struct.pack('>I4I4', high + TWO_31, low)
end

local function unpack_number(bytes)
  local high, low = halves(bytes)
  if high < TWO_31 then
    bytes = invert(bytes)
  else
    bytes = struct.pack('>I4I4', high - TWO_31, low)
  end
  return (struct.unpack('>d', bytes))
end

local kinds = { number = number, int64 = int64 }
