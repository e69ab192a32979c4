-- Points an account to the room it hosts, if nobody else moved the pointer since it was read.
-- KEYS[1] pointer   ARGV: code, code expected there ('' for none), life in ms
-- Answers 1 when the pointer names the code, else 0. Safe to run twice.
local code = redis.call('GET', KEYS[1]) or ''
if code ~= ARGV[1] and code ~= ARGV[2] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
