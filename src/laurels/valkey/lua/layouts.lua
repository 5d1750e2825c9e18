-- The two layouts of a window, plain and exact. Both have the same functions, so callers need not tell them apart.
--
-- A window is a table of its keys, as `windows_of` reads them from KEYS:
--   entries    zset   plain: member -> score.  exact: entry .. member -> 0, ordered by bytes
--   positions  hash   exact only: member -> entry
--   metadata   hash   member -> JSON, of the submission that set the entry or from laurels_set_metadata
--   scores     zset   dense only: the distinct scores
--   counts     hash   dense only: distinct score -> number of entries with it
--
-- An entry is one value in Lua, so two entries can be compared with ==:
--   plain   the score, a number
--   exact   a string: the eight bytes of the score, then for `earliest` the eight of the moment
-- Order of ranks, best first (ranks that leave this library count from 0):
--   shared    by score; equal scores in the server's own order (member bytes ascending on an asc board,
--             descending on a desc board)
--   earliest  by score, then moment ascending, then member bytes ascending
--   member    by score, then member bytes ascending
-- In `earliest` and `member` the bytes are stored in rank order: inverted for a desc board, read forward.
-- In `shared` they are stored ascending: a desc board is read in reverse.
--
-- A place is an entry as callers pass and receive it: for plain the text of the score; for exact the sortable bytes
-- of the score, never inverted, then those of the moment.

-- `unpack` takes fewer than 8,000 values.
local SPREAD = 7000

local function spread(call, key, values)
  local total = #values
  if total == 0 then return end
  for first = 1, total, SPREAD do
    redis.call(call, key, unpack(values, first, math.min(first + SPREAD - 1, total)))
  end
end

-- The replies of a command for many values, in their order.
local function gather(call, key, values)
  local total = #values
  if total == 0 then return {} end
  if total <= SPREAD then return redis.call(call, key, unpack(values)) end
  local gathered = {}
  for first = 1, total, SPREAD do
    for _, answer in ipairs(redis.call(call, key, unpack(values, first, math.min(first + SPREAD - 1, total)))) do
      gathered[#gathered + 1] = answer
    end
  end
  return gathered
end

local function text(value) return string.format('%.17g', value) end

-- Compares by bytes in every locale.
local function bytes_before(left, right)
  for i = 1, math.min(#left, #right) do
    local a, b = string.byte(left, i), string.byte(right, i)
    if a ~= b then return a < b end
  end
  return #left < #right
end

local plain = {}

function plain.make(board, score) return score end
function plain.score(board, entry) return entry end
function plain.compare(board, left, right) return number.compare(left, right) end
function plain.place(board, entry) return text(entry) end
function plain.entry(board, place) return tonumber(place) end
function plain.score_of(place) return tonumber(place) end

function plain.read(board, window, members)
  local entries = {}
  for i, score in ipairs(gather('ZMSCORE', window.entries, members)) do
    if score then entries[members[i]] = tonumber(score) end
  end
  return entries
end

function plain.write(board, window, changes)
  local scored, at = {}, 0
  for _, change in ipairs(changes) do
    scored[at + 1], scored[at + 2] = text(change.new), change.member
    at = at + 2
  end
  spread('ZADD', window.entries, scored)
end

function plain.remove(board, window, member)
  redis.call('ZREM', window.entries, member)
end

function plain.remove_all(board, window, changes)
  local members = {}
  for i, change in ipairs(changes) do members[i] = change.member end
  spread('ZREM', window.entries, members)
end

-- The number of entries with a strictly better score. `score` is text.
function plain.better_than(board, window, score)
  if board.desc then return redis.call('ZCOUNT', window.entries, '(' .. score, '+inf') end
  return redis.call('ZCOUNT', window.entries, '-inf', '(' .. score)
end

function plain.better(board, window, entry) return plain.better_than(board, window, text(entry)) end

-- The number of entries listed before this one, which exists.
function plain.index(board, window, entry, member)
  return redis.call(board.desc and 'ZREVRANK' or 'ZRANK', window.entries, member)
end

-- The number of entries that would be listed before (entry, member), whether or not it exists. The member '' is the
-- edge of that score: after its entries on a desc board, before them on an asc board.
function plain.before(board, window, entry, member)
  local score = text(entry)
  if member == '' then
    if board.desc then return redis.call('ZCOUNT', window.entries, score, '+inf') end
    return redis.call('ZCOUNT', window.entries, '-inf', '(' .. score)
  end
  local low = plain.better(board, window, entry)
  local high = low + redis.call('ZCOUNT', window.entries, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = plain.list(board, window, middle, middle)[1]
    local precedes
    if board.desc then precedes = bytes_before(member, found) else precedes = bytes_before(found, member) end
    if precedes then low = middle + 1 else high = middle end
  end
  return low
end

-- Entries from index first to last, best first, as a flat list: member, place, member, place, …
function plain.list(board, window, first, last)
  return redis.call(board.desc and 'ZREVRANGE' or 'ZRANGE', window.entries, first, last, 'WITHSCORES')
end

function plain.scan(window, cursor, count)
  local found = redis.call('ZSCAN', window.entries, cursor, 'COUNT', count)
  local members = {}
  for i = 1, #found[2], 2 do members[#members + 1] = found[2][i] end
  return found[1], members
end

-- Distinct scores: the member of `scores`, its score there, and the number of better ones.
function plain.token(entry) return text(entry) end
function plain.listed_score(token) return token end

function plain.distinct_better(board, window, entry)
  if board.desc then return redis.call('ZCOUNT', window.scores, '(' .. text(entry), '+inf') end
  return redis.call('ZCOUNT', window.scores, '-inf', '(' .. text(entry))
end

local exact = {}

function exact.make(board, score, moment)
  if board.inverted then score = invert(score) end
  return board.timed and score .. moment or score
end

function exact.score(board, entry)
  local score = #entry > 8 and string.sub(entry, 1, 8) or entry
  return board.inverted and invert(score) or score
end

function exact.compare(board, left, right)
  local order = int64.compare(left, right)
  return board.inverted and -order or order
end

function exact.place(board, entry)
  if not board.inverted then return entry end
  return invert(entry) .. string.sub(entry, 9)
end

function exact.entry(board, place) return exact.place(board, place) end
function exact.score_of(place) return string.sub(place, 1, 8) end

function exact.read(board, window, members)
  local entries = {}
  for i, entry in ipairs(gather('HMGET', window.positions, members)) do
    if entry then entries[members[i]] = entry end
  end
  return entries
end

function exact.write(board, window, changes)
  local gone, placed, positions, at = {}, {}, {}, 0
  for _, change in ipairs(changes) do
    local member = change.member
    if change.old then gone[#gone + 1] = change.old .. member end
    placed[at + 1], placed[at + 2] = '0', change.new .. member
    positions[at + 1], positions[at + 2] = member, change.new
    at = at + 2
  end
  spread('ZREM', window.entries, gone)
  spread('ZADD', window.entries, placed)
  spread('HSET', window.positions, positions)
end

function exact.remove(board, window, member, entry)
  redis.call('ZREM', window.entries, entry .. member)
  redis.call('HDEL', window.positions, member)
end

function exact.remove_all(board, window, changes)
  local entries, members = {}, {}
  for i, change in ipairs(changes) do
    entries[i], members[i] = change.old .. change.member, change.member
  end
  spread('ZREM', window.entries, entries)
  spread('HDEL', window.positions, members)
end

-- UTF-8 never has the byte 255, so score .. 255 sorts after every entry of that score.
function exact.better(board, window, entry, member)
  if board.unique then return exact.before(board, window, entry, member) end
  if board.desc then return redis.call('ZLEXCOUNT', window.entries, '(' .. entry .. '\255', '+') end
  return redis.call('ZLEXCOUNT', window.entries, '-', '(' .. entry)
end

function exact.index(board, window, entry, member)
  return redis.call(board.reverse and 'ZREVRANK' or 'ZRANK', window.entries, entry .. member)
end

function exact.before(board, window, entry, member)
  if board.reverse then return redis.call('ZLEXCOUNT', window.entries, '(' .. entry .. member, '+') end
  return redis.call('ZLEXCOUNT', window.entries, '-', '(' .. entry .. member)
end

-- Pages of a thousand entries are common, so the loop does no lookup or cut twice.
function exact.list(board, window, first, last)
  local cut, unpack_bytes, pack_bytes, most = string.sub, struct.unpack, struct.pack, TWO_32 - 1
  local timed, inverted = board.timed, board.inverted
  local width = timed and 16 or 8
  local all = redis.call(board.reverse and 'ZREVRANGE' or 'ZRANGE', window.entries, first, last)
  local listed = {}
  for i = 1, #all do
    local found = all[i]
    local place
    if inverted then
      local high, low = unpack_bytes('>I4I4', found)
      place = pack_bytes('>I4I4', most - high, most - low)
      if timed then place = place .. cut(found, 9, 16) end
    else
      place = cut(found, 1, width)
    end
    listed[2 * i - 1], listed[2 * i] = cut(found, width + 1), place
  end
  return listed
end

function exact.scan(window, cursor, count)
  local found = redis.call('HSCAN', window.positions, cursor, 'COUNT', count)
  local members = {}
  for i = 1, #found[2], 2 do members[#members + 1] = found[2][i] end
  return found[1], members
end

function exact.token(entry) return string.sub(entry, 1, 8) end
function exact.listed_score(token) return '0' end

function exact.distinct_better(board, window, entry)
  local score = exact.token(entry)
  if board.reverse then return redis.call('ZLEXCOUNT', window.scores, '(' .. score, '+') end
  return redis.call('ZLEXCOUNT', window.scores, '-', '(' .. score)
end

local layouts = { plain = plain, exact = exact }

-- The board as the header's `shape` describes it: {layout, kind, desc, ties, dense, metadata, templated}, with 1 and
-- 0 for true and false. Other programs may have keys of a templated board's windows.
local function board_of(shape)
  local ties = shape[4]
  return {
    layout = layouts[shape[1]],
    exact = shape[1] == 'exact',
    kind = kinds[shape[1]][shape[2]],
    desc = shape[3] == 1,
    unique = ties ~= 'shared',
    timed = ties == 'earliest',
    inverted = ties ~= 'shared' and shape[3] == 1,
    reverse = ties == 'shared' and shape[3] == 1,
    dense = shape[5] == 1,
    metadata = shape[6] == 1,
    templated = shape[7] == 1,
    adopted = {},
  }
end

local TYPES = { entries = 'zset', positions = 'hash', metadata = 'hash', scores = 'zset', counts = 'hash' }

-- The board's hash has the field 'adopted:KEY' for each window that was taken over from another program. Such a key
-- outlives the board and never gets an expiry.
local function adopted_field(key) return 'adopted:' .. key end

local function is_adopted(board_key, key)
  return redis.call('HGET', board_key, adopted_field(key)) == '1'
end

-- Raises the error 'TAKEN NUMBER TYPE', before anything is written, if a key of the window has another type: another
-- program has put a value there. NUMBER is the key's place in KEYS.
local function check_types(keys, window)
  for part, key in pairs(window) do
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'none' and kind ~= TYPES[part] then
      for number = 1, #keys do
        if keys[number] == key then error({ err = string.format('TAKEN %d %s', number, kind) }) end
      end
    end
  end
end

-- The windows in KEYS from KEYS[first] on. Each has the same number of keys.
local function windows_of(board, keys, first)
  local windows = {}
  local at = first
  while at <= #keys do
    local window = { entries = keys[at] }
    at = at + 1
    if board.exact then window.positions, at = keys[at], at + 1 end
    if board.metadata then window.metadata, at = keys[at], at + 1 end
    if board.dense then window.scores, window.counts, at = keys[at], keys[at + 1], at + 2 end
    windows[#windows + 1] = window
    if board.templated then
      check_types(keys, window)
      if is_adopted(keys[1], window.entries) then board.adopted[window.entries] = true end
    end
  end
  return windows
end

-- Updates the distinct scores of a window for changes {member, old, new}. `old` or `new` may be nil.
local function count_scores(board, window, changes)
  local layout = board.layout
  local moved, tokens = {}, {}
  local function count(entry, by)
    local token = layout.token(entry)
    if not moved[token] then
      tokens[#tokens + 1] = token
      moved[token] = 0
    end
    moved[token] = moved[token] + by
  end
  for _, change in ipairs(changes) do
    if change.old then count(change.old, -1) end
    if change.new then count(change.new, 1) end
  end
  local counts, added, gone = {}, {}, {}
  for i, before in ipairs(gather('HMGET', window.counts, tokens)) do
    local token = tokens[i]
    local after = (tonumber(before) or 0) + moved[token]
    if before and after <= 0 then
      gone[#gone + 1] = token
    elseif after > 0 and moved[token] ~= 0 then
      counts[#counts + 1] = token
      counts[#counts + 1] = after
      if not before then
        added[#added + 1] = layout.listed_score(token)
        added[#added + 1] = token
      end
    end
  end
  spread('HSET', window.counts, counts)
  spread('ZADD', window.scores, added)
  spread('ZREM', window.scores, gone)
  spread('HDEL', window.counts, gone)
end

-- Applies changes {member, old, new} to a window: its entries and its distinct scores.
local function write(board, window, changes)
  board.layout.write(board, window, changes)
  if board.dense then count_scores(board, window, changes) end
end

-- Removes members from a window: changes {member, old}, all of which exist.
local function take_out(board, window, changes)
  if #changes == 0 then return end
  board.layout.remove_all(board, window, changes)
  if board.dense then count_scores(board, window, changes) end
end

-- Sets the expiry of a window's keys, unless they have one; 0 seconds sets none.
local function expire(board, window, seconds)
  if seconds <= 0 then return end
  for _, key in pairs(window) do
    if not board.adopted[key] then redis.call('EXPIRE', key, seconds, 'NX') end
  end
end
