-- Counts a password that an account tries at a room, before anything is hashed.
-- KEYS[1] tries   ARGV: now in ms, limit, pause in ms
-- Answers 0 when the try is allowed, else the milliseconds to wait: the pause begins with the last allowed try.
local now, pause = tonumber(ARGV[1]), tonumber(ARGV[3])
local tries = redis.call('HMGET', KEYS[1], 'count', 'until')
local count, ends = tonumber(tries[1] or 0), tonumber(tries[2] or 0)
if ends <= now then
  count = 0
elseif count >= tonumber(ARGV[2]) then
  return ends - now
end
redis.call('HSET', KEYS[1], 'count', count + 1, 'until', now + pause)
redis.call('PEXPIRE', KEYS[1], pause)
return 0
