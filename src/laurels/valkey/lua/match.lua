-- laurels_match: applies matches of one board one after the other, all or none. The caller has computed the new
-- ratings from the states that it expects. If a player has another state, or a match that the caller takes for new
-- was seen before, nothing is written, and the caller gets the present states.
--
-- KEYS  1…8          as laurels_submit
--       9 ratings    hash    member -> state (see ratings/state.py), not read here
--       10…          windows, as laurels_submit
-- ARGV  1…           as laurels_submit: each player of each match is a submission of its new rating
--       then         for each player once: member, expected state or '', new state or '' for no change
--
-- header  as laurels_submit, with `ids` and `calls` of matches instead of submissions; and
--         sizes       the number of players of each match
--         skip        each submission: 1 if it enters no window
--         repeated    each match: 1 if the caller knows that its id was seen before
--
-- Returns {'version', current}, {'metadata'}, {'fenced'}    as laurels_submit
--         {'stale', states, repeated}   nothing was written; each player's present state, and 1 for each match that
--                                       was seen before, else 0
--         {'ok', ranks}   flat: rank and previous rank of each submission, from 0; -1 for none

-- The reply if a state or a match is not as the caller expects; nil if all are.
local function stale(header, keys, players, seen)
  local expected, states, repeated = true, {}, {}
  for i, state in ipairs(gather('HMGET', keys[9], players.members)) do
    states[i] = state or ''
    expected = expected and states[i] == players.expected[i]
  end
  for i, is_repeated in ipairs(header.repeated) do
    repeated[i] = seen[i] and 1 or 0
    expected = expected and repeated[i] == is_repeated
  end
  if not expected then return { 'stale', states, repeated } end
end

local function read_players(header, args)
  local players = { members = {}, expected = {}, changed = {} }
  for i = PAIRS + 2 * header.count, #args, 3 do
    players.members[#players.members + 1] = args[i]
    players.expected[#players.expected + 1] = args[i + 1]
    if args[i + 2] ~= '' then
      players.changed[#players.changed + 1] = args[i]
      players.changed[#players.changed + 1] = args[i + 2]
    end
  end
  return players
end

-- Writes one player's entries, and updates `states`.
local function enter(header, board, windows, states, targets, submission)
  local member = submission.member
  local entries = outcome(header, board, states, targets, submission)
  local is_folded = {}
  for _, target in ipairs(targets) do is_folded[target.window] = target.how == 'fold' end
  for window, new in pairs(entries) do
    local old = states[window][member]
    if changes_entry(header, submission, old, new) then
      local change = { member = member, old = old, new = new, metadata = header.metadata[submission.index] or '' }
      write(board, windows[window], { change })
      if board.metadata and not is_folded[window] then write_metadata(windows[window], { change }) end
      states[window][member] = new
    end
  end
end

local function play(header, board, windows, args)
  local submissions, members = read_submissions(header, board, args)
  local states = read_states(header, board, windows, members)
  local targets = targets_by_submission(header)
  local ranks, first = {}, 1
  local function rank_of(i)
    local window, member = header.first[i], members[i]
    return rank(board, windows[window], window > 0 and states[window][member] or nil, member)
  end
  for _, size in ipairs(header.sizes) do
    local last = first + size - 1
    for i = first, last do ranks[2 * i] = rank_of(i) end
    for i = first, last do
      if header.skip[i] == 0 then enter(header, board, windows, states, targets[i], submissions[i]) end
    end
    for i = first, last do ranks[2 * i - 1] = rank_of(i) end
    first = last + 1
  end
  return ranks
end

local function match(keys, args)
  local header = cmsgpack.unpack(args[1])
  local board = board_of(header.shape)
  local known = redis.call('HMGET', keys[1], 'version', 'metadata', 'fence', 'ids', 'calls')
  if tonumber(known[1]) ~= header.version then return { 'version', known[1] or '' } end
  if is_fenced(known[3]) then return { 'fenced' } end
  if known[2] and not board.metadata then return { 'metadata' } end
  local seen = duplicates(header, keys)
  local players = read_players(header, args)
  local refusal = stale(header, keys, players, seen)
  if refusal then return refusal end
  local windows = windows_of(board, keys, 10)
  local ranks = play(header, board, windows, args)
  if #players.changed > 0 then
    spread('HSET', keys[9], players.changed)
    for _, target in ipairs(header.targets) do expire(board, windows[target.window], target.seconds) end
    if board.metadata then redis.call('HSET', keys[1], 'metadata', 1) end
    append(header.journal, keys[2], args[2], '')
  end
  if #players.changed > 0 or header.durable == 1 then
    remember(header, keys, seen, { ids = known[4], calls = known[5] })
  end
  return { 'ok', ranks }
end

redis.register_function('laurels_match', match)
