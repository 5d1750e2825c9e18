-- How Valkey holds a window, in one form for every board.
--
-- A window is a table of its keys, as `windows_of` reads them from KEYS:
--   entries    zset   prefix .. member -> double
--   prefixes   hash   member -> prefix; only if the board's entries have one
--   metadata   hash   member -> JSON, of the submission that set the entry or from laurels_set_metadata
--   scores     zset   dense only: the distinct scores
--   counts     hash   dense only: distinct score -> number of entries with it
--
-- The double is the score, negated on a desc board that breaks ties; an int64 is rounded down to it (see values.lua).
-- The prefix has, in this order and where they exist, the bytes that the double and the member cannot hold:
--   two bytes     int64      what was rounded away
--   eight bytes   earliest   the moment
-- So a sorted set is in the order of ranks, or in that order reversed. Best first (ranks that leave this library count
-- from 0):
--   shared    by score; equal scores in the server's own order (member bytes ascending on an asc board,
--             descending on a desc board, which is read in reverse)
--   earliest  by score, then moment ascending, then member bytes ascending
--   member    by score, then member bytes ascending
--
-- An entry is one value in Lua, so two entries can be compared with ==: the double, a number; or, if there is a
-- prefix, the eight bytes of the double and the prefix, a string.
--
-- A place is an entry as callers pass and receive it: where ties are shared and scores are doubles, the text of the
-- score; else the sortable bytes of the score, then those of the moment.

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

local layout = {}

local function entry_of(board, double, prefix)
  return board.is_prefixed and struct.pack('>d', double) .. prefix or double
end

local function double_of(board, entry)
  return board.is_prefixed and (struct.unpack('>d', entry)) or entry
end

-- The sorted set's element, and its prefix.
local function element_of(board, entry, member)
  if not board.is_prefixed then return member end
  local prefix = string.sub(entry, 9)
  return prefix .. member, prefix
end

-- The double of a score, and its prefix without the moment.
local function split(board, score)
  if not board.int64 then return board.negated and 0 - score or score, '' end
  local double, low = int64.split(score)
  if board.negated then double, low = int64.negated(double, low) end
  return double, struct.pack('>I2', low)
end

function layout.make(board, score, moment)
  local double, low = split(board, score)
  return entry_of(board, double, board.timed and low .. moment or low)
end

function layout.score(board, entry)
  local double = double_of(board, entry)
  if not board.int64 then return board.negated and 0 - double or double end
  local low = struct.unpack('>I2', entry, 9)
  if board.negated then double, low = int64.negated(double, low) end
  return int64.join(double, low)
end

function layout.moment(board, entry) return string.sub(entry, board.int64 and 11 or 9) end

-- By the scores alone.
function layout.compare(board, left, right)
  local order = number.compare(double_of(board, left), double_of(board, right))
  if order == 0 and board.int64 then
    order = number.compare(struct.unpack('>I2', left, 9), (struct.unpack('>I2', right, 9)))
  end
  return board.negated and -order or order
end

function layout.place(board, entry)
  local score = layout.score(board, entry)
  if board.texts then return text(score) end
  if not board.int64 then score = pack_number(score) end
  return board.timed and score .. layout.moment(board, entry) or score
end

function layout.score_of(board, place)
  if board.texts then return tonumber(place) end
  return board.int64 and string.sub(place, 1, 8) or unpack_number(place)
end

function layout.entry(board, place)
  return layout.make(board, layout.score_of(board, place), board.timed and string.sub(place, 9))
end

-- For each of these members the text of its double, its prefix and its element; no double for those without an entry.
local function held(board, window, members)
  if not board.is_prefixed then return gather('ZMSCORE', window.entries, members), {}, members end
  local prefixes, elements = gather('HMGET', window.prefixes, members), {}
  for i = 1, #members do
    local prefix, member = prefixes[i], members[i]
    elements[i] = prefix and prefix .. member or member
  end
  return gather('ZMSCORE', window.entries, elements), prefixes, elements
end

function layout.read(board, window, members)
  local entries = {}
  local doubles, prefixes = held(board, window, members)
  for i, double in ipairs(doubles) do
    if double then entries[members[i]] = entry_of(board, tonumber(double), prefixes[i]) end
  end
  return entries
end

function layout.write(board, window, changes)
  local gone, placed, prefixes = {}, {}, {}
  for _, change in ipairs(changes) do
    local member = change.member
    local element, prefix = element_of(board, change.new, member)
    placed[#placed + 1] = double_of(board, change.new)
    placed[#placed + 1] = element
    if prefix then
      local old = change.old and element_of(board, change.old, member)
      if old ~= element then
        gone[#gone + 1] = old
        prefixes[#prefixes + 1] = member
        prefixes[#prefixes + 1] = prefix
      end
    end
  end
  spread('ZREM', window.entries, gone)
  spread('ZADD', window.entries, placed)
  spread('HSET', window.prefixes, prefixes)
end

-- Removes members: changes {member, old}, all of which exist.
function layout.remove(board, window, changes)
  local elements, members = {}, {}
  for i, change in ipairs(changes) do
    elements[i], members[i] = element_of(board, change.old, change.member), change.member
  end
  spread('ZREM', window.entries, elements)
  if board.is_prefixed then spread('HDEL', window.prefixes, members) end
end

-- The number of elements with a better double. `double` is a number or its text.
local function better_than(board, key, double)
  if type(double) == 'number' then double = text(double) end
  if board.reverse then return redis.call('ZCOUNT', key, '(' .. double, '+inf') end
  return redis.call('ZCOUNT', key, '-inf', '(' .. double)
end

-- The number of elements listed before this one, whether or not it exists; found by halving among those with the same
-- double. The empty element is at the edge of that double: listed last in reverse, else first.
local function before_in(board, key, double, element)
  local score = text(double)
  local first = better_than(board, key, score)
  if element == '' and not board.reverse then return first end
  local last = first + redis.call('ZCOUNT', key, score, score)
  if element == '' then return last end
  local range = board.reverse and 'ZREVRANGE' or 'ZRANGE'
  local function is_after(index)
    local found = redis.call(range, key, index, index)[1]
    if board.reverse then return bytes_before(element, found) end
    return bytes_before(found, element)
  end
  -- Many callers ask for the edges of a score, so these come first.
  if first == last or not is_after(first) then return first end
  if is_after(last - 1) then return last end
  local low, high = first + 1, last - 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_after(middle) then low = middle + 1 else high = middle end
  end
  return low
end

function layout.before(board, window, entry, member)
  return before_in(board, window.entries, double_of(board, entry), (element_of(board, entry, member)))
end

-- The number of entries listed before this one, which exists.
function layout.index(board, window, entry, member)
  local element = element_of(board, entry, member)
  return redis.call(board.reverse and 'ZREVRANK' or 'ZRANK', window.entries, element)
end

-- The number of entries with a strictly better score; where ranks are unique, of entries listed before this one, which
-- exists.
function layout.better(board, window, entry, member)
  if board.unique then return layout.index(board, window, entry, member) end
  local double = double_of(board, entry)
  if not board.int64 or math.abs(double) < TWO_53 then return better_than(board, window.entries, double) end
  -- UTF-8 never has the byte 255, so low .. 255 sorts after every entry with these low bytes.
  return before_in(board, window.entries, double, string.sub(entry, 9) .. (board.reverse and '\255' or ''))
end

-- Entries from index first to last, best first, as a flat list: member, place, member, place, …
-- Pages of a thousand entries are common, so the loop does no lookup twice.
function layout.list(board, window, first, last)
  local listed = redis.call(board.reverse and 'ZREVRANGE' or 'ZRANGE', window.entries, first, last, 'WITHSCORES')
  if board.texts then return listed end
  local cut, pack_bytes, is_int64, negated = string.sub, struct.pack, board.int64, board.negated
  local from, width = is_int64 and 3 or 1, board.width
  for i = 1, #listed, 2 do
    local element, double = listed[i], tonumber(listed[i + 1])
    local score
    if is_int64 then
      local low = struct.unpack('>I2', element)
      if negated then double, low = int64.negated(double, low) end
      score = int64.join(double, low)
    else
      score = pack_number(negated and 0 - double or double)
    end
    listed[i], listed[i + 1] = cut(element, width + 1), score .. cut(element, from, width)
  end
  return listed
end

function layout.scan(board, window, cursor, count)
  local found
  if board.is_prefixed then
    found = redis.call('HSCAN', window.prefixes, cursor, 'COUNT', count)
  else
    found = redis.call('ZSCAN', window.entries, cursor, 'COUNT', count)
  end
  local members = {}
  for i = 1, #found[2], 2 do members[#members + 1] = found[2][i] end
  return found[1], members
end

-- Distinct scores are in the order of the entries: the text of the double and the low bytes -> double.
local function token_of(board, entry)
  local double = double_of(board, entry)
  return text(double) .. (board.int64 and string.sub(entry, 9, 10) or ''), double
end

function layout.distinct_better(board, window, entry)
  local token, double = token_of(board, entry)
  if not board.int64 or math.abs(double) < TWO_53 then return better_than(board, window.scores, double) end
  return before_in(board, window.scores, double, token)
end

-- The board as the header's `shape` describes it: {kind, desc, ties, dense, metadata, templated}, with 1 and
-- 0 for true and false. Other programs may have keys of a templated board's windows.
local function board_of(shape)
  local ties, is_int64, desc = shape[3], shape[1] == 'int64', shape[2] == 1
  local kind = kinds[shape[1]] or error({ err = 'ERR another version of Laurels called: stop its processes' })
  local unique, timed = ties ~= 'shared', ties == 'earliest'
  local width = (is_int64 and 2 or 0) + (timed and 8 or 0)
  return {
    texts = not unique and not is_int64,
    kind = kind,
    int64 = is_int64,
    desc = desc,
    unique = unique,
    timed = timed,
    width = width,
    is_prefixed = width > 0,
    negated = unique and desc,
    reverse = not unique and desc,
    dense = shape[4] == 1,
    metadata = shape[5] == 1,
    templated = shape[6] == 1,
    adopted = {},
  }
end

local TYPES = { entries = 'zset', prefixes = 'hash', metadata = 'hash', scores = 'zset', counts = 'hash' }

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
    if board.is_prefixed then window.prefixes, at = keys[at], at + 1 end
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
  local moved, doubles, tokens = {}, {}, {}
  local function count(entry, by)
    local token, double = token_of(board, entry)
    if not moved[token] then
      tokens[#tokens + 1] = token
      moved[token], doubles[token] = 0, double
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
        added[#added + 1] = doubles[token]
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
  layout.write(board, window, changes)
  if board.dense then count_scores(board, window, changes) end
end

-- Removes members from a window: changes {member, old}, all of which exist.
local function take_out(board, window, changes)
  if #changes == 0 then return end
  layout.remove(board, window, changes)
  if board.dense then count_scores(board, window, changes) end
end

-- Sets the expiry of a window's keys, unless they have one; 0 seconds sets none.
local function expire(board, window, seconds)
  if seconds <= 0 then return end
  for _, key in pairs(window) do
    if not board.adopted[key] then redis.call('EXPIRE', key, seconds, 'NX') end
  end
end
