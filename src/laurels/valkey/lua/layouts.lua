-- The two layouts of a window. Both answer the same questions, so nothing above sees which it is.
--
-- A window is a table of its keys, as `windows_of` reads them from KEYS:
--   entries    zset   plain: member -> score.  exact: position .. member -> 0, ordered by bytes
--   positions  hash   exact only: member -> position
--   metadata   hash   member -> JSON of the submission that set the entry
--   scores     zset   dense only: the distinct scores
--   counts     hash   dense only: distinct score -> how many entries have it
--
-- A position is the sortable bytes of the score, then for `earliest` those of the moment.
-- Order of ranks, best first (ranks that leave this library count from 0):
--   shared    by score; equal scores in the server's own order (member bytes ascending where the board
--             is asc, descending where it is desc)
--   earliest  by score, then moment ascending, then member bytes ascending
--   member    by score, then member bytes ascending
-- In `earliest` and `member` the bytes are stored in rank order: inverted for a desc board, read forward.
-- In `shared` they are stored ascending: a desc board is read in reverse.

-- Values that `unpack` may spread into one call stay under 8,000.
local SPREAD = 7000

local function spread(call, key, values, ...)
  local total = #values
  for first = 1, total, SPREAD do
    local last = math.min(first + SPREAD - 1, total)
    local arguments = { ... }
    for i = first, last do arguments[#arguments + 1] = values[i] end
    server.call(call, key, unpack(arguments))
  end
end

local function text(value) return string.format('%.17g', value) end

-- Byte order, whatever the locale.
local function bytes_before(left, right)
  local shared = math.min(#left, #right)
  for i = 1, shared do
    local a, b = string.byte(left, i), string.byte(right, i)
    if a ~= b then return a < b end
  end
  return #left < #right
end

local plain = {}

function plain.read(board, window, members)
  local values = {}
  for first = 1, #members, SPREAD do
    local last = math.min(first + SPREAD - 1, #members)
    local scores = server.call('ZMSCORE', window.entries, unpack(members, first, last))
    for i, score in ipairs(scores) do
      if score then values[members[first + i - 1]] = { score = tonumber(score) } end
    end
  end
  return values
end

function plain.write(board, window, changes)
  local pairs_of_score_member = {}
  for _, change in ipairs(changes) do
    pairs_of_score_member[#pairs_of_score_member + 1] = text(change.new.score)
    pairs_of_score_member[#pairs_of_score_member + 1] = change.member
  end
  if #changes > 0 then spread('ZADD', window.entries, pairs_of_score_member) end
end

function plain.remove(board, window, member)
  server.call('ZREM', window.entries, member)
end

function plain.better(board, window, entry)
  local score = text(entry.score)
  if board.desc then return server.call('ZCOUNT', window.entries, '(' .. score, '+inf') end
  return server.call('ZCOUNT', window.entries, '-inf', '(' .. score)
end

-- How many entries stand before (entry, member) in rank order, whether or not it is there itself.
function plain.before(board, window, entry, member)
  local rank = server.call(board.desc and 'ZREVRANK' or 'ZRANK', window.entries, member)
  if rank then
    local score = server.call('ZSCORE', window.entries, member)
    if tonumber(score) == entry.score then return rank end
  end
  local low = plain.better(board, window, entry)
  local score = text(entry.score)
  local high = low + server.call('ZCOUNT', window.entries, score, score)
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
  return server.call(board.desc and 'ZREVRANGE' or 'ZRANGE', window.entries, first, last, 'WITHSCORES')
end

-- A place is how an entry's standing leaves and enters this library: for plain the text of the score,
-- for exact the sortable bytes of the score, then those of the moment.
function plain.place(board, entry) return text(entry.score) end
function plain.score(board, place) return tonumber(place) end
function plain.entry(board, place) return { score = tonumber(place) } end

function plain.scan(window, cursor, count)
  local found = server.call('ZSCAN', window.entries, cursor, 'COUNT', count)
  local members = {}
  for i = 1, #found[2], 2 do members[#members + 1] = found[2][i] end
  return found[1], members
end

function plain.token(board, entry) return text(entry.score) end

function plain.add_tokens(window, tokens)
  local scored = {}
  for _, token in ipairs(tokens) do
    scored[#scored + 1] = token
    scored[#scored + 1] = token
  end
  spread('ZADD', window.scores, scored)
end

function plain.distinct_better(board, window, entry)
  local score = text(entry.score)
  if board.desc then return server.call('ZCOUNT', window.scores, '(' .. score, '+inf') end
  return server.call('ZCOUNT', window.scores, '-inf', '(' .. score)
end

local exact = {}

local function score_bytes(board, entry)
  if board.inverted then return invert(entry.score) end
  return entry.score
end

local function position(board, entry)
  if not entry.position then
    entry.position = score_bytes(board, entry)
    if board.timed then entry.position = entry.position .. entry.moment end
  end
  return entry.position
end

local function parse_position(board, bytes)
  local score = string.sub(bytes, 1, 8)
  if board.inverted then score = invert(score) end
  return { score = score, moment = board.timed and string.sub(bytes, 9, 16) or nil, position = bytes }
end

function exact.read(board, window, members)
  local values = {}
  for first = 1, #members, SPREAD do
    local last = math.min(first + SPREAD - 1, #members)
    local found = server.call('HMGET', window.positions, unpack(members, first, last))
    for i, bytes in ipairs(found) do
      if bytes then values[members[first + i - 1]] = parse_position(board, bytes) end
    end
  end
  return values
end

function exact.write(board, window, changes)
  local gone, placed, positions = {}, {}, {}
  for _, change in ipairs(changes) do
    if change.old then gone[#gone + 1] = position(board, change.old) .. change.member end
    local bytes = position(board, change.new)
    placed[#placed + 1] = '0'
    placed[#placed + 1] = bytes .. change.member
    positions[#positions + 1] = change.member
    positions[#positions + 1] = bytes
  end
  if #gone > 0 then spread('ZREM', window.entries, gone) end
  if #placed > 0 then
    spread('ZADD', window.entries, placed)
    spread('HSET', window.positions, positions)
  end
end

function exact.remove(board, window, member, entry)
  server.call('ZREM', window.entries, position(board, entry) .. member)
  server.call('HDEL', window.positions, member)
end

-- Members are UTF-8, which never holds byte 255: score .. 255 lies behind every entry of that score.
function exact.better(board, window, entry, member)
  local score = score_bytes(board, entry)
  if board.unique then return exact.before(board, window, entry, member) end
  if board.desc then return server.call('ZLEXCOUNT', window.entries, '(' .. score .. '\255', '+') end
  return server.call('ZLEXCOUNT', window.entries, '-', '(' .. score)
end

function exact.before(board, window, entry, member)
  local place = position(board, entry) .. member
  if board.reverse then return server.call('ZLEXCOUNT', window.entries, '(' .. place, '+') end
  return server.call('ZLEXCOUNT', window.entries, '-', '(' .. place)
end

function exact.place(board, entry)
  if board.timed then return entry.score .. entry.moment end
  return entry.score
end

function exact.score(board, place) return string.sub(place, 1, 8) end

function exact.entry(board, place)
  local entry = { score = exact.score(board, place) }
  if board.timed then entry.moment = string.sub(place, 9, 16) end
  return entry
end

function exact.list(board, window, first, last)
  local width = board.timed and 16 or 8
  local listed = {}
  for _, found in ipairs(server.call(board.reverse and 'ZREVRANGE' or 'ZRANGE', window.entries, first, last)) do
    listed[#listed + 1] = string.sub(found, width + 1)
    listed[#listed + 1] = exact.place(board, parse_position(board, string.sub(found, 1, width)))
  end
  return listed
end

function exact.scan(window, cursor, count)
  local found = server.call('HSCAN', window.positions, cursor, 'COUNT', count)
  local members = {}
  for i = 1, #found[2], 2 do members[#members + 1] = found[2][i] end
  return found[1], members
end

function exact.token(board, entry) return score_bytes(board, entry) end

function exact.add_tokens(window, tokens)
  local scored = {}
  for _, token in ipairs(tokens) do
    scored[#scored + 1] = '0'
    scored[#scored + 1] = token
  end
  spread('ZADD', window.scores, scored)
end

function exact.distinct_better(board, window, entry)
  local score = score_bytes(board, entry)
  if board.reverse then return server.call('ZLEXCOUNT', window.scores, '(' .. score, '+') end
  return server.call('ZLEXCOUNT', window.scores, '-', '(' .. score)
end

local layouts = { plain = plain, exact = exact }

-- What every call says of its board, in the first value of its header:
-- {layout, kind, desc, ties, dense, metadata}; 1 and 0 for true and false.
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
  }
end

-- The windows whose keys begin at KEYS[first]; each takes the same number of keys.
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
  end
  return windows
end

-- Keeps the distinct scores of a window in step with its changes {member, old, new}; either may be nil.
local function count_scores(board, window, changes)
  local by_token, tokens = {}, {}
  local function count(entry, by)
    local token = board.layout.token(board, entry)
    if not by_token[token] then tokens[#tokens + 1] = token end
    by_token[token] = (by_token[token] or 0) + by
  end
  for _, change in ipairs(changes) do
    if change.old then count(change.old, -1) end
    if change.new then count(change.new, 1) end
  end
  if #tokens == 0 then return end
  local counts, added, gone = {}, {}, {}
  for first = 1, #tokens, SPREAD do
    local last = math.min(first + SPREAD - 1, #tokens)
    local found = server.call('HMGET', window.counts, unpack(tokens, first, last))
    for i, before in ipairs(found) do
      local token = tokens[first + i - 1]
      local after = (tonumber(before) or 0) + by_token[token]
      if after <= 0 then
        gone[#gone + 1] = token
      elseif by_token[token] ~= 0 then
        counts[#counts + 1] = token
        counts[#counts + 1] = after
        if not before then added[#added + 1] = token end
      end
    end
  end
  if #counts > 0 then spread('HSET', window.counts, counts) end
  if #added > 0 then board.layout.add_tokens(window, added) end
  if #gone > 0 then
    spread('ZREM', window.scores, gone)
    spread('HDEL', window.counts, gone)
  end
end

-- Applies changes {member, old, new} to a window: its entries and its distinct scores.
local function write(board, window, changes)
  board.layout.write(board, window, changes)
  if board.dense then count_scores(board, window, changes) end
end

-- Lets a window's keys go when nobody can ask for it any more; seconds 0 keeps them.
local function expire(window, seconds)
  if seconds <= 0 then return end
  for _, key in pairs(window) do server.call('EXPIRE', key, seconds, 'NX') end
end
