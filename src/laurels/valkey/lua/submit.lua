-- laurels_submit: applies a batch of submissions to one board, or to one shard of it. Decides first which of them
-- are accepted, then writes every window, group and derived window, and the journal.
-- `journal/member_fold.py` has the same rules, for one member of one window at a time;
-- `tests/journal/test_member_fold.py` compares the two.
--
-- KEYS  1 board      hash    version, metadata (set once any entry of the board has some), fence (see
--                            rebuild.lua)
--       2 journal    stream  one entry a call
--       3…5 ids      sets    ids that clients gave, in three generations (see generations.lua)
--       6…8 calls    sets    ids of calls that ran, in three generations
--       9 fed        set     only if `fed` is 1: calls of feeders that their drains have not archived yet
--       then once    hashes  only if there are fingerprints: records of idempotency keys, in three generations
--       then         the windows, as `windows_of` reads them: first those to write, then the days that a
--                    rolling window only reads
-- ARGV  1 header     msgpack map, below
--       2 journal entry (see journal/entry.py), not read here
--       3 moments    eight sortable bytes for each submission; '' unless ties go to the earliest
--       4…           score, member for each submission; the score as a place (see layout.lua)
--
-- header  shape, version, aggregate
--         count       how many submissions
--         fast        1: entries are written without reading them first (no prefix, nothing derived)
--         report      1: return scores and ranks; then no member may occur twice
--         journal     1: append to the journal; 2: only append a sign that something changed
--         durable     1: write something even if no submission is accepted, because a WAITAOF or WAIT follows
--         call        this call's id
--         fed         1: the call comes from a board that feeds this one. It may come twice, and runs once
--         replayed    0; or the second that a replay has come to, by which generations age
--         ids         each submission's id if the client gave one, or ''
--         calls       where an id was made by an earlier call, that call; or ''
--         fingerprints  where an id is an idempotency key, the fingerprint of its request; or ''. Needs `report`
--         ops         each submission's aggregate, or '' for the board's
--         metadata    each submission's metadata; '' for none; 'null' if it was erased
--         first       each submission's window to report on, or 0
--         max_change  0, or the greatest distance from the entry in the first window
--         targets     list of {window, chosen, seconds, how, base, days, op}:
--                     chosen 0 for all submissions or a list of them; seconds to live or 0;
--                     how 'direct', 'sum' (changes by the change of `base`) or 'fold' (aggregates `days` by
--                     `op`; its entries have no metadata, because each comes from several submissions)
--         A list that no submission needs is empty.
--
-- Returns {'version', current}   the definition changed; '' if Valkey does not know the board
--         {'metadata'}           the board has metadata, and the call lacks the keys of metadata
--         {'fenced'}             a fence keeps writers off the board (see rebuild.lua)
--         error TAKEN            another program has a key of these windows (see layout.lua)
--                                In these four cases nothing was written.
--         {'ok', refused, reports}
--             refused  flat list: index, 'duplicate' | 'range' | 'max_change'; or of an idempotency key 'answered',
--                      'busy' (another worker has the request), 'other' (it belongs to another request)
--             reports  if `report` is 1, for each submission {applied, place, previous place, rank,
--                      previous rank}; ranks from 0; '' and -1 for none. For 'answered' the report from
--                      then, or {response} of a request that laurels_settle ended

-- Signs that the stream of a board without a journal holds, about.
local SIGNS = 100
local PAIRS = 4
-- A replay forgets ids within a day. The live board remembered them for longer than that, so a repetition in the
-- journal that is older was accepted as a new submission.
local REPLAYED_PERIOD = 8 * 3600

-- Refuses submissions whose id was seen before, in an earlier call or earlier in this one.
local function duplicates(header, keys)
  local refused = {}
  if header.fed == 1 and remembered({ unpack(keys, 6, 9) }, { header.call })[header.call] then
    for i = 1, header.count do refused[i] = 'duplicate' end
    return refused
  end
  if #header.ids == 0 then return refused end
  local seen = remembered({ unpack(keys, 3, 5) }, header.ids)
  local ran = remembered({ unpack(keys, 6, 8) }, header.calls)
  for i, id in ipairs(header.ids) do
    if id ~= '' then
      if seen[id] or ran[header.calls[i]] then refused[i] = 'duplicate' end
      seen[id] = true
    end
  end
  return refused
end

-- `state`: the board's field `ids`. `replayed` as in the header.
local function remember_ids(keys, ids, state, replayed)
  if #ids == 0 then return end
  local now, period = seconds_now(), PERIODS.ids
  if replayed > 0 then now, period = replayed, REPLAYED_PERIOD end
  local key = generation(keys, 3, 'ids', state, now, period)
  spread('SADD', key, ids)
  redis.call('EXPIRE', key, MEMORY_SECONDS, 'NX')
end

-- `known`: the board's fields `ids` and `calls`. Ids made by this call are recognized by the call's id.
local function remember(header, keys, refused, known)
  local now = header.replayed > 0 and header.replayed or seconds_now()
  local calls, is_new = generation(keys, 6, 'calls', known.calls, now, PERIODS.calls)
  redis.call('SADD', calls, header.call)
  if is_new then redis.call('EXPIRE', calls, MEMORY_SECONDS) end
  if header.fed == 1 then
    redis.call('SADD', keys[9], header.call)
    -- A call that ran before adds nothing, but the WAITAOF that follows needs a write.
    if header.durable == 1 then redis.call('HSET', keys[1], 'version', header.version) end
  end
  local ids = {}
  for i, id in ipairs(header.ids) do
    if id ~= '' and header.calls[i] ~= header.call and not refused[i] then ids[#ids + 1] = id end
  end
  remember_ids(keys, ids, known.ids, header.replayed)
end

-- The journal is not bounded here: the drain trims what it has archived.
local function append(how, journal, body, skipped)
  if how == 1 then
    redis.call('XADD', journal, '*', 'body', body, 'skipped', skipped)
  elseif how == 2 then
    redis.call('XADD', journal, 'MAXLEN', '~', SIGNS, '*', 'sign', '1')
  end
end

-- Whether a fence keeps writers off. A fence is 'MILLISECONDS TOKEN' and holds until that time. One that ends later
-- than `LONGEST_FENCE` allows was set before the clock was set back, and does not count.
local LONGEST_FENCE = 60000

local function is_fenced(fence)
  if not fence then return false end
  local now = redis.call('TIME')
  local left = tonumber(string.match(fence, '^%d+')) - tonumber(now[1]) * 1000 - math.floor(tonumber(now[2]) / 1000)
  return left > 0 and left <= LONGEST_FENCE
end

local FLAGS = { first = 'NX', last = 'CH' }

-- The scores of the members in the windows to report on: text by number of the submission, false for none.
local function reported_scores(header, windows, args)
  local members, numbers = {}, {}
  for i = 1, header.count do
    local window = header.first[i]
    if window > 0 then
      if not members[window] then members[window], numbers[window] = {}, {} end
      table.insert(members[window], args[PAIRS + 2 * i - 1])
      table.insert(numbers[window], i)
    end
  end
  local scores = {}
  for window, asked in pairs(members) do
    local found = gather('ZMSCORE', windows[window].entries, asked)
    for at, i in ipairs(numbers[window]) do scores[i] = found[at] end
  end
  return scores
end

-- For each of these scores the number of better entries; -1 for no score, or one that equals that in `known`.
local function reported_ranks(header, board, windows, scores, known)
  local ranks = {}
  for i = 1, header.count do
    local score = scores[i]
    local is_asked = score and not (known and known[i] == score)
    ranks[i] = is_asked and better_than(board, windows[header.first[i]].entries, score) or -1
  end
  return ranks
end

local function add_all(key, flag, pairs_of, first)
  for from = first, #pairs_of, SPREAD do
    redis.call('ZADD', key, flag, unpack(pairs_of, from, math.min(from + SPREAD - 1, #pairs_of)))
  end
end

local function write_unread(header, board, windows, args)
  local flag = FLAGS[header.aggregate] or (board.reverse and 'GT' or 'LT')
  if not board.texts then
    for at = PAIRS, PAIRS + 2 * header.count - 2, 2 do args[at] = layout.entry(board, args[at]) end
  end
  for _, target in ipairs(header.targets) do
    local key = windows[target.window].entries
    if target.chosen == 0 then
      add_all(key, flag, args, PAIRS)
    else
      local chosen = {}
      for _, i in ipairs(target.chosen) do
        chosen[#chosen + 1] = args[PAIRS + 2 * i - 2]
        chosen[#chosen + 1] = args[PAIRS + 2 * i - 1]
      end
      add_all(key, flag, chosen, 1)
    end
  end
end

-- Writes entries without reading them, except for the reports. Only where places are text can there be reports.
local function write_fast(header, board, windows, args)
  if header.report == 0 then
    write_unread(header, board, windows, args)
    return {}
  end
  local before = reported_scores(header, windows, args)
  local ranks_before = reported_ranks(header, board, windows, before)
  write_unread(header, board, windows, args)
  local after = reported_scores(header, windows, args)
  local ranks = reported_ranks(header, board, windows, after, before)
  local reports = {}
  for i = 1, header.count do
    local is_same = before[i] == after[i]
    reports[i] = {
      is_same and 0 or 1,
      after[i] or '',
      before[i] or '',
      is_same and ranks_before[i] or ranks[i],
      ranks_before[i],
    }
  end
  return reports
end

-- The entry after one submission: `old` itself if it does not change; nil if it is out of range.
local function aggregated(board, submission, old)
  local op, kind = submission.op, board.kind
  if op == 'sum' then
    local total = kind.moved(old and layout.score(board, old) or kind.zero, kind.zero, submission.score)
    if not total then return nil end
    if old and kind.compare(total, layout.score(board, old)) == 0 then return old end
    return layout.make(board, total, submission.moment)
  end
  if not old then return submission.entry end
  if op == 'first' then return old end
  local order = layout.compare(board, submission.entry, old)
  if order == 0 or (op == 'best' and (order > 0) ~= board.desc) then return old end
  return submission.entry
end

-- The entry of a rolling window. `entries`: those of its days, oldest first. nil if there are none, or if their sum is
-- out of range: `outcome` then refuses the submission, and laurels_fold leaves the member out.
-- journal/member_fold.py has the same rule.
local function folded(board, op, entries)
  if op == 'first' then return entries[1] end
  if op == 'last' then return entries[#entries] end
  local kind = board.kind
  local result = entries[1]
  if op == 'best' then
    for i = 2, #entries do
      local order = layout.compare(board, entries[i], result)
      local is_earlier = order == 0 and board.timed
        and int64.compare(layout.moment(board, entries[i]), layout.moment(board, result)) < 0
      if is_earlier or (order ~= 0 and (order > 0) == board.desc) then result = entries[i] end
    end
    return result
  end
  if #entries < 2 then return result end
  local scores, moment = {}, nil
  for i, entry in ipairs(entries) do
    scores[i] = layout.score(board, entry)
    if board.timed then
      local own = layout.moment(board, entry)
      if not moment or int64.compare(own, moment) > 0 then moment = own end
    end
  end
  local total = kind.total(scores)
  return total and layout.make(board, total, moment)
end

-- The present entries in every window that is read: states[window][member].
local function read_states(header, board, windows, members)
  local listed, everybody = {}, {}
  for _, member in ipairs(members) do
    if not listed[member] then
      listed[member] = true
      everybody[#everybody + 1] = member
    end
  end
  local wanted = {}
  local function want(window, chosen)
    if chosen == 0 or wanted[window] == everybody then
      wanted[window] = everybody
      return
    end
    wanted[window] = wanted[window] or {}
    for _, i in ipairs(chosen) do table.insert(wanted[window], members[i]) end
  end
  for _, target in ipairs(header.targets) do
    want(target.window, target.chosen)
    for _, day in ipairs(target.days) do want(day, target.chosen) end
  end
  local states = {}
  for window, asked in pairs(wanted) do
    states[window] = layout.read(board, windows[window], asked)
  end
  return states
end

-- The targets of each submission; one shared list if all have the same.
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
  return aggregated(board, submission, old)
end

function outcomes.sum(board, target, submission, old, entries, states)
  local before, after = states[target.base][submission.member], entries[target.base]
  if after == before then return old end
  local kind = board.kind
  local sum = old and layout.score(board, old) or kind.zero
  local total = kind.moved(sum, before and layout.score(board, before) or kind.zero, layout.score(board, after))
  if not total then return nil end
  if old and kind.compare(total, sum) == 0 then return old end
  return layout.make(board, total, submission.moment)
end

function outcomes.fold(board, target, submission, old, entries, states)
  local days = {}
  for _, day in ipairs(target.days) do days[#days + 1] = entries[day] or states[day][submission.member] end
  return folded(board, target.op, days)
end

-- The entries of the targets after one submission, by window; or nil and why the submission is refused.
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
    if old and board.kind.distance_exceeds(layout.score(board, new), layout.score(board, old), header.max_change) then
      return nil, 'max_change'
    end
  end
  return entries
end

local function rank(board, window, entry, member)
  if not entry then return -1 end
  return layout.better(board, window, entry, member)
end

local function place(board, entry)
  return entry and layout.place(board, entry) or ''
end

local function read_submissions(header, board, args)
  local submissions, members = {}, {}
  for i = 1, header.count do
    local op = header.ops[i]
    local score = layout.score_of(board, args[PAIRS + 2 * i - 2])
    local moment = board.timed and string.sub(args[3], 8 * i - 7, 8 * i) or nil
    members[i] = args[PAIRS + 2 * i - 1]
    submissions[i] = {
      index = i,
      member = members[i],
      score = score,
      moment = moment,
      entry = layout.make(board, score, moment),
      op = (op and op ~= '') and op or header.aggregate,
    }
  end
  return submissions, members
end

-- Whether a submission changes an entry; with `last`, its metadata may change alone.
local function changes_entry(header, submission, old, new)
  return new ~= old or (submission.op == 'last' and (header.metadata[submission.index] or '') ~= '')
end

-- Records a change of a member's entry in a window; merges it with an earlier change of the same entry.
local function note(changes, places, window, member, old, new, metadata)
  local of_window = changes[window]
  if not of_window then
    of_window = {}
    changes[window], places[window] = of_window, {}
  end
  local place = places[window][member]
  if place then
    of_window[place].new, of_window[place].metadata = new, metadata
  else
    places[window][member] = #of_window + 1
    of_window[#of_window + 1] = { member = member, old = old, new = new, metadata = metadata }
  end
end

-- Whether a submission can be refused because of its result, or one window depends on another.
local function is_entangled(header)
  if header.max_change ~= 0 or header.aggregate == 'sum' or #header.ops > 0 then return true end
  for _, target in ipairs(header.targets) do
    if target.how ~= 'direct' then return true end
  end
  return false
end

-- The changes of all submissions: for each window a list of {member, old, new, metadata} with each member once, and
-- each member's place in that list. Adds to `refused`, and updates `states`.
local function compute(header, board, states, submissions, refused)
  local changes, places = {}, {}
  if not is_entangled(header) then
    for _, target in ipairs(header.targets) do
      local window, chosen = target.window, target.chosen
      local state = states[window]
      for at = 1, chosen == 0 and header.count or #chosen do
        local i = chosen == 0 and at or chosen[at]
        local submission = submissions[i]
        local old = state[submission.member]
        local new = aggregated(board, submission, old)
        if not refused[i] and changes_entry(header, submission, old, new) then
          note(changes, places, window, submission.member, old, new, header.metadata[i] or '')
          state[submission.member] = new
        end
      end
    end
    return changes, places
  end
  local targets = targets_by_submission(header)
  for i, submission in ipairs(submissions) do
    local entries
    if not refused[i] then
      entries, refused[i] = outcome(header, board, states, targets[i], submission)
    end
    for window, new in pairs(entries or {}) do
      local old = states[window][submission.member]
      if changes_entry(header, submission, old, new) then
        note(changes, places, window, submission.member, old, new, header.metadata[i] or '')
        states[window][submission.member] = new
      end
    end
  end
  return changes, places
end

local function write_metadata(window, changes)
  local kept, dropped = {}, {}
  for _, change in ipairs(changes) do
    if change.metadata == '' or change.metadata == 'null' then
      dropped[#dropped + 1] = change.member
    else
      kept[#kept + 1] = change.member
      kept[#kept + 1] = change.metadata
    end
  end
  spread('HSET', window.metadata, kept)
  spread('HDEL', window.metadata, dropped)
end

-- The entry and rank that each submission finds in its first window, for the reports.
local function found_before(header, board, windows, states, submissions)
  local reports = {}
  for i, submission in ipairs(submissions) do
    local first, member = header.first[i], submission.member
    local entry = first > 0 and states[first][member] or nil
    reports[i] = { entry = entry, rank = rank(board, windows[first], entry, member) }
  end
  return reports
end

-- What a batch changes in one window, or nil if only `write_general` can tell: the elements that go, the doubles and
-- elements to set, the members and prefixes to set; each a flat list.
local function batch_changes(header, board, window, batch, chosen)
  local members, doubles, prefixes, elements = batch.members, batch.doubles, batch.prefixes, batch.elements
  local count = #members
  if chosen ~= 0 then
    members, count = {}, #chosen
    for at = 1, count do members[at] = batch.members[chosen[at]] end
  end
  local op, reverse, is_int64, is_prefixed = header.aggregate, board.reverse, board.int64, board.is_prefixed
  local old_doubles, old_prefixes, old_elements = held(board, window, members)
  local gone, placed, prefixed, goes, places, prefixings = {}, {}, {}, 0, 0, 0
  for at = 1, count do
    local i = chosen == 0 and at or chosen[at]
    local new, old = doubles[i], old_doubles[at]
    if old then old = tonumber(old) end
    if op == 'sum' then
      new = number.moved(old or 0, 0, new)
      if not new then return nil end
    end
    -- Beyond 2^53 the double is not all of an int64.
    if is_int64 and (math.abs(new) >= TWO_53 or math.abs(old or 0) >= TWO_53) then return nil end
    local is_new = not old
    if op == 'best' then
      is_new = is_new or (new ~= old and (new < old) ~= reverse)
    elseif op ~= 'first' then
      is_new = new ~= old
    end
    if is_new then
      placed[places + 1], placed[places + 2] = new, elements[i]
      places = places + 2
      if is_prefixed and old_prefixes[at] ~= prefixes[i] then
        if old then
          goes = goes + 1
          gone[goes] = old_elements[at]
        end
        prefixed[prefixings + 1], prefixed[prefixings + 2] = members[at], prefixes[i]
        prefixings = prefixings + 2
      end
    end
  end
  return { gone = gone, placed = placed, prefixed = prefixed }
end

-- The members of a batch, with the doubles, prefixes and elements of their submissions; nil if a member comes twice.
local function read_batch(header, board, args)
  local members, doubles, prefixes, elements, seen = {}, {}, {}, {}, {}
  for i = 1, header.count do
    local at = PAIRS + 2 * i - 2
    local member = args[at + 1]
    if seen[member] then return nil end
    seen[member] = true
    local double, prefix = split(board, layout.score_of(board, args[at]))
    if board.timed then prefix = prefix .. string.sub(args[3], 8 * i - 7, 8 * i) end
    members[i], doubles[i], prefixes[i], elements[i] = member, double, prefix, prefix .. member
  end
  return { members = members, doubles = doubles, prefixes = prefixes, elements = elements }
end

-- Writes a batch as `write_general` does, in a third of its time. Returns false, and writes nothing, unless every
-- submission is a plain score of another member, and no window depends on another.
local function write_batch(header, board, windows, args)
  if header.report == 1 or header.max_change ~= 0 or #header.ops > 0 or board.metadata or board.dense then
    return false
  end
  for _, target in ipairs(header.targets) do
    if target.how ~= 'direct' then return false end
  end
  local batch = read_batch(header, board, args)
  if not batch then return false end
  local changes = {}
  for i, target in ipairs(header.targets) do
    changes[i] = batch_changes(header, board, windows[target.window], batch, target.chosen)
    if not changes[i] then return false end
  end
  for i, target in ipairs(header.targets) do
    local window = windows[target.window]
    spread('ZREM', window.entries, changes[i].gone)
    spread('ZADD', window.entries, changes[i].placed)
    spread('HSET', window.prefixes, changes[i].prefixed)
  end
  return true
end

local function write_general(header, board, windows, args, refused)
  local submissions, members = read_submissions(header, board, args)
  local states = read_states(header, board, windows, members)
  local before = header.report == 1 and found_before(header, board, windows, states, submissions) or {}
  local changes, places = compute(header, board, states, submissions, refused)
  local is_folded = {}
  for _, target in ipairs(header.targets) do is_folded[target.window] = target.how == 'fold' end
  for window, of_window in pairs(changes) do
    write(board, windows[window], of_window)
    if board.metadata and not is_folded[window] then write_metadata(windows[window], of_window) end
  end
  local reports = {}
  for i, old in ipairs(before) do
    local first, member = header.first[i], members[i]
    local entry = first > 0 and states[first][member] or nil
    local previous = place(board, old.entry)
    reports[i] = {
      places[first] and places[first][member] and 1 or 0,
      entry == old.entry and previous or place(board, entry),
      previous,
      changes[first] and rank(board, windows[first], entry, member) or old.rank,
      old.rank,
    }
  end
  return reports
end

local function submit(keys, args)
  local header = cmsgpack.unpack(args[1])
  local board = board_of(header.shape)
  local known = redis.call('HMGET', keys[1], 'version', 'metadata', 'fence', 'ids', 'calls', 'once')
  if tonumber(known[1]) ~= header.version then return { 'version', known[1] or '' } end
  if is_fenced(known[3]) then return { 'fenced' } end
  if known[2] and not board.metadata then return { 'metadata' } end
  local once, has_keys = 9 + header.fed, #header.fingerprints > 0
  local windows = windows_of(board, keys, has_keys and once + 3 or once)
  local refused = duplicates(header, keys)
  local answered = has_keys and answered_before(header, keys, once, refused) or {}
  local is_whole, reports = next(refused) == nil, {}
  if is_whole and header.fast == 1 and (board.texts or header.report == 0) then
    reports = write_fast(header, board, windows, args)
  elseif not (is_whole and write_batch(header, board, windows, args)) then
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
    for _, target in ipairs(header.targets) do expire(board, windows[target.window], target.seconds) end
    if board.metadata then redis.call('HSET', keys[1], 'metadata', 1) end
    append(header.journal, keys[2], args[2], table.concat(skipped, ','))
  end
  if #skipped < header.count or header.durable == 1 then
    remember(header, keys, refused, { ids = known[4], calls = known[5] })
  end
  if has_keys then record_answers(header, keys, once, known[6], refused, reports, args) end
  for i, report in pairs(answered) do reports[i] = report end
  return { 'ok', flat, reports }
end

redis.register_function('laurels_submit', submit)
