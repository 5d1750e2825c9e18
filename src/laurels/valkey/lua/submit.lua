-- laurels_submit: a batch of submissions to one board (or one shard of it), all or nothing until it is
-- known which of them are accepted; then every window, group and derived window, and the journal.
--
-- KEYS  1 board      hash    version, metadata (set once any entry of the board has some)
--       2 journal    stream  one entry a call
--       3 ids        set     ids that clients gave, this day;      4 the same, the day before
--       5 calls      set     calls that ran, these ten minutes;    6 the same, the ten before
--       7…           the windows, as `windows_of` reads them: those written, then the days that a
--                    rolling window only reads
-- ARGV  1 header     msgpack map, below
--       2 journal entry, opaque here
--       3 moments    eight sortable bytes for each submission; '' unless ties go to the earliest
--       4…           score, member for each submission; the score as a place (see layouts.lua)
--
-- header  shape, version, aggregate
--         count       how many submissions
--         fast        1: variadic writes need no reading first (plain layout, nothing derived or reported)
--         report      1: answer with scores and ranks; no member may occur twice
--         journal     1: append to the journal
--         call        this call's id
--         ids         each submission's given id, or ''
--         calls       the call that made the id, where a made id comes back in a retry, or ''
--         ops         each submission's aggregate, or '' for the board's
--         metadata    each submission's metadata, or ''
--         first       each submission's window to report on, or 0
--         max_change  0, or the greatest distance from the entry in the first window
--         targets     list of {window, chosen, seconds, how, base, days, op}:
--                     chosen 0 for all submissions or a list of them; seconds to live or 0;
--                     how 'direct', 'sum' (moves with `base`) or 'fold' (aggregates `days` by `op`; its
--                     entries are made of several submissions, so they carry no metadata)
--         Lists that no submission needs are empty.
--
-- Returns {'version', current}   the definition changed, or Valkey knows no board; nothing was written
--         {'metadata'}           the board has metadata, and the call did not name its keys; nothing written
--         {'ok', refused, reports}
--             refused  flat list: index, 'duplicate' | 'range' | 'max_change'
--             reports  for each submission {applied, place, previous place, rank, previous rank}, ranks
--                      from 0; '' and -1 where there is none. Empty unless asked for.

local ID_SECONDS = 2 * 86400
local CALL_SECONDS = 2 * 600
-- Until the archive drains it, the journal stays bounded: about this many calls.
local JOURNAL_CALLS = 10000
local PAIRS = 4

local function remembered(keys, names)
  local found = {}
  local asked = {}
  for _, name in ipairs(names) do
    if name ~= '' then asked[#asked + 1] = name end
  end
  for first = 1, #asked, SPREAD do
    local last = math.min(first + SPREAD - 1, #asked)
    for _, key in ipairs(keys) do
      local known = server.call('SMISMEMBER', key, unpack(asked, first, last))
      for i, is_known in ipairs(known) do
        if is_known == 1 then found[asked[first + i - 1]] = true end
      end
    end
  end
  return found
end

-- Submissions whose id was seen before, in earlier calls or earlier in this one.
local function duplicates(header, keys)
  local refused = {}
  if #header.ids == 0 then return refused end
  local seen = remembered({ keys[3], keys[4] }, header.ids)
  local ran = remembered({ keys[5], keys[6] }, header.calls)
  for i, id in ipairs(header.ids) do
    if id ~= '' then
      if seen[id] or ran[header.calls[i]] then refused[i] = 'duplicate' end
      seen[id] = true
    end
  end
  return refused
end

local function remember(header, keys, refused)
  server.call('SADD', keys[5], header.call)
  server.call('EXPIRE', keys[5], CALL_SECONDS, 'NX')
  local ids = {}
  for i, id in ipairs(header.ids) do
    if id ~= '' and not refused[i] then ids[#ids + 1] = id end
  end
  if #ids > 0 then
    spread('SADD', keys[3], ids)
    server.call('EXPIRE', keys[3], ID_SECONDS, 'NX')
  end
end

local FLAGS = { best = { [true] = 'GT', [false] = 'LT' }, first = 'NX', last = 'CH' }

local function write_fast(header, board, windows, args)
  local flag = FLAGS[header.aggregate]
  if header.aggregate == 'best' then flag = flag[board.desc] end
  for _, target in ipairs(header.targets) do
    local key = windows[target.window].entries
    if target.chosen == 0 then
      for first = PAIRS, #args, SPREAD do
        server.call('ZADD', key, flag, unpack(args, first, math.min(first + SPREAD - 1, #args)))
      end
    else
      local chosen = {}
      for _, i in ipairs(target.chosen) do
        chosen[#chosen + 1] = args[PAIRS + 2 * i - 2]
        chosen[#chosen + 1] = args[PAIRS + 2 * i - 1]
      end
      spread('ZADD', key, chosen, flag)
    end
  end
end

-- What one submission makes of an entry: the entry itself when it stays as it is; nil out of range.
local function aggregated(board, op, old, score, moment)
  local kind = board.kind
  if op == 'sum' then
    local total = kind.moved(old and old.score or kind.zero, kind.zero, score)
    if not total then return nil end
    if old and kind.compare(total, old.score) == 0 then return old end
    return { score = total, moment = moment }
  end
  if not old then return { score = score, moment = moment } end
  if op == 'first' then return old end
  local order = kind.compare(score, old.score)
  if order == 0 then return old end
  if op == 'best' and (order > 0) ~= board.desc then return old end
  return { score = score, moment = moment }
end

local function same(board, left, right)
  return board.kind.compare(left.score, right.score) == 0 and left.moment == right.moment
end

-- A rolling window's entry: its days' entries, oldest first, aggregated. nil when no day has one; false
-- out of range.
local function folded(board, op, entries)
  local kind = board.kind
  local result
  for _, entry in ipairs(entries) do
    if not result then
      result = { score = entry.score, moment = entry.moment }
    elseif op == 'sum' then
      local total = kind.moved(result.score, kind.zero, entry.score)
      if not total then return false end
      result.score = total
      if board.timed and int64.compare(entry.moment, result.moment) > 0 then result.moment = entry.moment end
    elseif op == 'last' then
      result = { score = entry.score, moment = entry.moment }
    elseif op == 'best' then
      local order = kind.compare(entry.score, result.score)
      if order ~= 0 and (order > 0) == board.desc then
        result = { score = entry.score, moment = entry.moment }
      elseif order == 0 and board.timed and int64.compare(entry.moment, result.moment) < 0 then
        result.moment = entry.moment
      end
    end
  end
  return result
end

-- The entries as they stand, for every window that is read: states[window][member].
local function read_states(header, board, windows, members)
  local wanted = {}
  local function want(window, chosen)
    local of_window = wanted[window] or { list = {}, set = {} }
    wanted[window] = of_window
    local function add(member)
      if not of_window.set[member] then
        of_window.set[member] = true
        of_window.list[#of_window.list + 1] = member
      end
    end
    if chosen == 0 then
      for _, member in ipairs(members) do add(member) end
    else
      for _, i in ipairs(chosen) do add(members[i]) end
    end
  end
  for _, target in ipairs(header.targets) do
    want(target.window, target.chosen)
    for _, day in ipairs(target.days) do want(day, target.chosen) end
  end
  local states = {}
  for window, asked in pairs(wanted) do
    states[window] = board.layout.read(board, windows[window], asked.list)
  end
  return states
end

-- The targets of each submission; one shared list where all have the same.
local function targets_by_submission(header)
  local by_submission, all_alike = {}, true
  for _, target in ipairs(header.targets) do all_alike = all_alike and target.chosen == 0 end
  for i = 1, header.count do by_submission[i] = all_alike and header.targets or {} end
  if all_alike then return by_submission end
  for _, target in ipairs(header.targets) do
    if target.chosen == 0 then
      for i = 1, header.count do table.insert(by_submission[i], target) end
    else
      for _, i in ipairs(target.chosen) do table.insert(by_submission[i], target) end
    end
  end
  return by_submission
end

local outcomes = {}

function outcomes.direct(board, target, submission, old)
  return aggregated(board, submission.op, old, submission.score, submission.moment)
end

function outcomes.sum(board, target, submission, old, entries, states)
  local before, after = states[target.base][submission.member], entries[target.base]
  if after == before then return old end
  local zero = board.kind.zero
  local total = board.kind.moved(old and old.score or zero, before and before.score or zero, after.score)
  return total and { score = total, moment = submission.moment }
end

function outcomes.fold(board, target, submission, old, entries, states)
  local days = {}
  for _, day in ipairs(target.days) do days[#days + 1] = entries[day] or states[day][submission.member] end
  local new = folded(board, target.op, days)
  if new and old and same(board, new, old) then return old end
  return new
end

-- The entries that one submission would leave in its targets, by window; or nil and why it is refused.
local function outcome(header, board, states, targets, submission)
  local member = submission.member
  local entries = {}
  for i = 1, #targets do
    local target = targets[i]
    local window = target.window
    local new = outcomes[target.how](board, target, submission, states[window][member], entries, states)
    if not new then return nil, 'range' end
    entries[window] = new
  end
  local first = header.first[submission.index]
  if header.max_change ~= 0 and first and first > 0 then
    local old, new = states[first][member], entries[first]
    if old and board.kind.distance_exceeds(new.score, old.score, header.max_change) then
      return nil, 'max_change'
    end
  end
  return entries
end

local function rank(board, window, entry, member)
  if not entry then return -1 end
  return board.layout.better(board, window, entry, member)
end

local function place(board, entry)
  return entry and board.layout.place(board, entry) or ''
end

local function read_submissions(header, board, args)
  local submissions, members = {}, {}
  for i = 1, header.count do
    local op = header.ops[i]
    members[i] = args[PAIRS + 2 * i - 1]
    submissions[i] = {
      index = i,
      member = members[i],
      score = board.layout.score(board, args[PAIRS + 2 * i - 2]),
      op = (op and op ~= '') and op or header.aggregate,
      moment = board.timed and string.sub(args[3], 8 * i - 7, 8 * i) or nil,
    }
  end
  return submissions, members
end

-- What the submissions change: for each window a list of {member, old, new, metadata}, a member once.
-- Marks the submissions that are refused, and tells of each what it found and left in its first window.
local function compute(header, board, states, submissions, refused)
  local changes, places, reports = {}, {}, {}
  local targets = targets_by_submission(header)
  for i, submission in ipairs(submissions) do
    local member, first = submission.member, header.first[i] or 0
    local report = { member = member, window = first, applied = 0 }
    if first > 0 then report.old = states[first][member] end
    local entries
    if not refused[i] then
      entries, refused[i] = outcome(header, board, states, targets[i], submission)
    end
    for window, new in pairs(entries or {}) do
      local state = states[window]
      local old = state[member]
      if new ~= old then
        if not changes[window] then changes[window], places[window] = {}, {} end
        local place = places[window][member]
        if not place then
          place = #changes[window] + 1
          places[window][member] = place
          changes[window][place] = { member = member, old = old }
        end
        changes[window][place].new = new
        changes[window][place].metadata = header.metadata[i] or ''
        state[member] = new
        if window == first then report.applied = 1 end
      end
    end
    if first > 0 then report.new = states[first][member] end
    reports[i] = report
  end
  return changes, reports
end

local function write_metadata(window, changes)
  local kept, dropped = {}, {}
  for _, change in ipairs(changes) do
    if change.metadata == '' then
      dropped[#dropped + 1] = change.member
    else
      kept[#kept + 1] = change.member
      kept[#kept + 1] = change.metadata
    end
  end
  if #kept > 0 then spread('HSET', window.metadata, kept) end
  if #dropped > 0 then spread('HDEL', window.metadata, dropped) end
end

local function write_general(header, board, windows, args, refused)
  local submissions, members = read_submissions(header, board, args)
  local states = read_states(header, board, windows, members)
  local changes, reports = compute(header, board, states, submissions, refused)
  local replies = {}
  if header.report == 1 then
    for i, report in ipairs(reports) do
      replies[i] = { report.applied, place(board, report.new), place(board, report.old), -1, -1 }
      replies[i][5] = rank(board, windows[report.window], report.old, report.member)
    end
  end
  local is_folded = {}
  for _, target in ipairs(header.targets) do is_folded[target.window] = target.how == 'fold' end
  for window, of_window in pairs(changes) do
    write(board, windows[window], of_window)
    if board.metadata and not is_folded[window] then write_metadata(windows[window], of_window) end
  end
  for i, reply in ipairs(replies) do
    reply[4] = rank(board, windows[reports[i].window], reports[i].new, reports[i].member)
  end
  return replies
end

local function submit(keys, args)
  local header = cmsgpack.unpack(args[1])
  local board = board_of(header.shape)
  local known = server.call('HMGET', keys[1], 'version', 'metadata')
  if tonumber(known[1]) ~= header.version then return { 'version', known[1] or '' } end
  if known[2] and not board.metadata then return { 'metadata' } end
  local windows = windows_of(board, keys, 7)
  local refused = duplicates(header, keys)
  local reports = {}
  if header.fast == 1 and next(refused) == nil then
    write_fast(header, board, windows, args)
  else
    reports = write_general(header, board, windows, args, refused)
  end
  local skipped, flat = {}, {}
  for i = 1, header.count do
    if refused[i] then
      skipped[#skipped + 1] = i
      flat[#flat + 1] = i
      flat[#flat + 1] = refused[i]
    end
  end
  if #skipped < header.count then
    for _, target in ipairs(header.targets) do expire(windows[target.window], target.seconds) end
    if board.metadata then server.call('HSET', keys[1], 'metadata', 1) end
    if header.journal == 1 then
      server.call('XADD', keys[2], 'MAXLEN', '~', JOURNAL_CALLS, '*',
        'body', args[2], 'skipped', table.concat(skipped, ','))
    end
    remember(header, keys, refused)
  end
  return { 'ok', flat, reports }
end

server.register_function('laurels_submit', submit)
