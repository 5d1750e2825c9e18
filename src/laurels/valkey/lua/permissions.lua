-- laurels_missing: what the caller's user cannot run here. Functions run with the caller's permissions, and one
-- that is refused a command half-way does not take back what it wrote: so this is asked at the start.
--
-- ARGV  commands, each as its words between spaces
-- Returns {command, 'unknown' or 'denied', …}, flat; reads only

local function missing(_, args)
  local found = {}
  for _, command in ipairs(args) do
    local words = {}
    for word in string.gmatch(command, '%S+') do words[#words + 1] = word end
    local is_known, is_allowed = pcall(redis.acl_check_cmd, unpack(words))
    if not is_known or not is_allowed then
      found[#found + 1] = command
      found[#found + 1] = is_known and 'denied' or 'unknown'
    end
  end
  return found
end

redis.register_function{ function_name = 'laurels_missing', callback = missing, flags = { 'no-writes' } }
