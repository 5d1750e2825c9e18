-- What wrk sends, and what it reports. KIND names the request, KEY is an API key, TOKENS a file of players' tokens.
-- Each thread and each run sends new scores.

local kind, key, members = os.getenv("KIND"), os.getenv("KEY"), tonumber(os.getenv("MEMBERS"))
local run, boards = os.getenv("RUN"), tonumber(os.getenv("BOARDS"))
local board = "/v1/projects/bench/boards/four"
local authorized = { ["Authorization"] = "Bearer " .. key }
local json = { ["Authorization"] = "Bearer " .. key, ["Content-Type"] = "application/json" }
local tokens, number = {}, 0

if kind == "submit by token" then
  for token in io.lines(os.getenv("TOKENS")) do tokens[#tokens + 1] = token end
end
math.randomseed(tonumber(run))

local function member() return string.format("m%07d", math.random(0, members - 1)) end
local function score() return math.random(1, 9000000) end

local kinds = {}

kinds["submit"] = function()
  local body = string.format('{"member":"%s","score":%d}', member(), score())
  return wrk.format("POST", board .. "/scores", json, body)
end

kinds["submit by token"] = function()
  number = number % #tokens + 1
  local headers = { ["Authorization"] = "Bearer " .. tokens[number], ["Content-Type"] = "application/json" }
  return wrk.format("POST", board .. "/scores", headers, string.format('{"score":%d}', score()))
end

kinds["submit with Idempotency-Key"] = function()
  number = number + 1
  json["Idempotency-Key"] = run .. "-" .. number
  return kinds["submit"]()
end

kinds["page of 10"] = function() return wrk.format("GET", board .. "/entries?limit=10", authorized) end

kinds["page of 10, many boards"] = function()
  local path = string.format("/v1/projects/bench/boards/b%d/entries?limit=10", math.random(0, boards - 1))
  return wrk.format("GET", path, authorized)
end

kinds["standing"] = function() return wrk.format("GET", board .. "/entries/" .. member(), authorized) end

kinds["around"] = function()
  return wrk.format("GET", board .. "/entries/" .. member() .. "/around", authorized)
end

kinds["among 100"] = function()
  local asked = {}
  for i = 1, 100 do asked[i] = '"' .. member() .. '"' end
  return wrk.format("POST", board .. "/entries/among", json, '{"members":[' .. table.concat(asked, ",") .. "]}")
end

request = kinds[kind]

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"seconds":%f,"failed":%d,"p50":%f,"p99":%f,"p999":%f}\n',
    summary.requests, summary.duration / 1e6,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, latency:percentile(99.9) / 1e6
  ))
end
