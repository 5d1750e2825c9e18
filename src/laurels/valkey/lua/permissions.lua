-- What the caller may do here.
--
-- laurels_missing    ARGV 1… commands, each as its words between spaces
--   what the caller's user cannot run. Functions run with the caller's permissions, and one that is refused a
--   command half-way does not take back what it wrote: so this is asked at the start.
--   -> {command, 'unknown' or 'denied', …}, flat
--
-- laurels_writable   does nothing, but is refused wherever a function that writes is: by a replica, without disk,
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
