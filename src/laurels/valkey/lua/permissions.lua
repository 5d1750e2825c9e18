-- What the caller may run.
--
-- laurels_missing    ARGV 1… commands, each with its words separated by spaces
--   lists the commands that the caller's user cannot run. A function runs with the caller's permissions and does not
--   roll back when one of its commands is refused, so this is checked at the start.
--   -> flat list: command, 'unknown' or 'denied'
--
-- laurels_writable   does nothing, but is refused when any writing function would be: on a replica, or without disk,
--                    replicas or memory
--   -> 1

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
redis.register_function('laurels_writable', function() return 1 end)
