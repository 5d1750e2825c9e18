-- Reads of one window. Ranks count from 0. No function walks the whole window.
--
-- KEYS of each function: 1 board, 2… the window. If header.version is not the board's, each returns
-- {'version', current}.
--
-- laurels_standing   ARGV 1 header {shape, version, brief}, 2… members
--   -> {total, for each member: {} if absent, or {place, better, before, distinct better, metadata}}
--      better: number of strictly better entries; before: number of entries listed before; distinct better: number
--      of better distinct scores, -1 unless dense
--      brief 1: leaves out what costs another count: before (-1, unless ranks are unique), distinct better, metadata
--
-- laurels_count      ARGV 1 header {shape, version}, 2… place, member, place, member, …
--   -> {total, for each: {better, before}}: where such an entry would stand, whether or not it exists
--
-- laurels_page       ARGV 1 header {shape, version, limit, by, …}, then the arguments of `by`
--   by 'start'   offset                         entries from that index on
--   by 'end'     offset                         entries up to that many from the end
--   by 'after'   ARGV 2 place, 3 member         entries after that place
--   by 'before'  ARGV 2 place, 3 member         entries before it
--   by 'member'  above, below, ARGV 2 member    entries around the member
--   by 'share'   share = {a, b}                 the one entry that a/b of the entries are no better than
--   -> {total, index of the first entry, entries better than the first, [member, place, …], [metadata or '', …]};
--      {total} if by 'member' finds no such member
--
-- laurels_scan       ARGV 1 header {shape, version, cursor, count}
--   lists some entries in no order; repeat with the next cursor until it is '0'. An entry that exists during the
--   whole scan is listed at least once, even if its score changes; it may be listed twice.
--   -> {total, next cursor, [member, place, …], [metadata, …]}

-- Wraps a read of one window: checks the version, and makes the board and its window from the header.
local function reading(answer)
  return function(keys, args)
    local header = cmsgpack.unpack(args[1])
    local known = redis.call('HMGET', keys[1], 'version', 'metadata')
    if tonumber(known[1]) ~= header.version then return { 'version', known[1] or '' } end
    local board = board_of(header.shape)
    local window = windows_of(board, keys, 2)[1]
    board.metadata = board.metadata and known[2]
    return answer(header, board, window, redis.call('ZCARD', window.entries), args)
  end
end

local function metadata_of(board, window, members)
  if not board.metadata then return {} end
  local found = gather('HMGET', window.metadata, members)
  for i = 1, #members do found[i] = found[i] or '' end
  return found
end

local function standing(header, board, window, total, args)
  local members = {}
  for i = 2, #args do members[#members + 1] = args[i] end
  local entries = layout.read(board, window, members)
  local metadata = header.brief == 0 and metadata_of(board, window, members) or {}
  local answer, better_than = { total }, {}
  for i, member in ipairs(members) do
    local entry = entries[member]
    if entry then
      local index, better = -1, nil
      if board.unique or header.brief == 0 then index = layout.index(board, window, entry, member) end
      if board.unique then
        better = index
      else
        better = better_than[entry] or layout.better(board, window, entry, member)
        better_than[entry] = better
      end
      answer[#answer + 1] = {
        layout.place(board, entry),
        better,
        index,
        board.dense and header.brief == 0 and layout.distinct_better(board, window, entry) or -1,
        metadata[i] or '',
      }
    else
      answer[#answer + 1] = {}
    end
  end
  return answer
end

local function count(_, board, window, total, args)
  local answer = { total }
  for i = 2, #args, 2 do
    local entry, member = layout.entry(board, args[i]), args[i + 1]
    local before = layout.before(board, window, entry, member)
    local is_edge = board.unique or member == ''
    answer[#answer + 1] = { is_edge and before or layout.better(board, window, entry, member), before }
  end
  return answer
end

-- The index of the first entry of a page, and its number of entries.
local bounds = {}

function bounds.start(header)
  return header.offset, header.limit
end

bounds['end'] = function(header, board, window, total)
  local first = math.max(0, total - header.offset - header.limit)
  return first, math.max(0, total - header.offset - first)
end

function bounds.after(header, board, window, total, args)
  local entry, member = layout.entry(board, args[2]), args[3]
  local first = layout.before(board, window, entry, member)
  local found = layout.list(board, window, first, first)
  if found[1] == member and found[2] == layout.place(board, entry) then first = first + 1 end
  return first, header.limit
end

function bounds.before(header, board, window, total, args)
  local entry, member = layout.entry(board, args[2]), args[3]
  local last = layout.before(board, window, entry, member)
  local first = math.max(0, last - header.limit)
  return first, last - first
end

function bounds.member(header, board, window, total, args)
  local entry = layout.read(board, window, { args[2] })[args[2]]
  if not entry then return nil end
  local at = layout.index(board, window, entry, args[2])
  local first = math.max(0, at - header.above)
  return first, at - first + 1 + header.below
end

function bounds.share(header, board, window, total)
  local no_better = math.max(1, math.ceil(header.share[1] * total / header.share[2]))
  return math.max(0, total - no_better), math.min(1, total)
end

local function page(header, board, window, total, args)
  local first, length = bounds[header.by](header, board, window, total, args)
  if not first then return { total } end
  local listed = {}
  if length > 0 then listed = layout.list(board, window, first, first + length - 1) end
  local members = {}
  if board.metadata then
    for i = 1, #listed, 2 do members[#members + 1] = listed[i] end
  end
  local better = first
  if listed[1] and not board.unique then
    better = layout.better(board, window, layout.entry(board, listed[2]), listed[1])
  end
  return { total, first, better, listed, metadata_of(board, window, members) }
end

local function scan(header, board, window, total)
  local cursor, members = layout.scan(board, window, header.cursor, header.count)
  local entries = layout.read(board, window, members)
  local listed = {}
  local found = {}
  for _, member in ipairs(members) do
    if entries[member] then
      found[#found + 1] = member
      listed[#listed + 1] = member
      listed[#listed + 1] = layout.place(board, entries[member])
    end
  end
  return { total, cursor, listed, metadata_of(board, window, found) }
end

redis.register_function{ function_name = 'laurels_standing', callback = reading(standing), flags = { 'no-writes' } }
redis.register_function{ function_name = 'laurels_count', callback = reading(count), flags = { 'no-writes' } }
redis.register_function{ function_name = 'laurels_page', callback = reading(page), flags = { 'no-writes' } }
redis.register_function{ function_name = 'laurels_scan', callback = reading(scan), flags = { 'no-writes' } }
