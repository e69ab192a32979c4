-- Takes back what a stream stood for: the host's presence, or a knock; nothing when a newer stream took over.
-- KEYS[1] room   KEYS[2] knocks   ARGV: account, generation of the stream, channel, code
-- Answers 1 when something changed, else 0.
local changed = 0
local room = redis.call('HMGET', KEYS[1], 'state', 'host_account', 'stream')
if room[1] == 'open' and room[2] == ARGV[1] and room[3] == ARGV[2] then
  redis.call('HSET', KEYS[1], 'stream', '', 'away', '1')
  changed = 1
end
local knock = redis.call('HGET', KEYS[2], ARGV[1])
if knock and string.match(knock, '^%d+ (%x+) ') == ARGV[2] then
  redis.call('HDEL', KEYS[2], ARGV[1])
  changed = 1
end
if changed == 1 then
  redis.call('PUBLISH', ARGV[3], ARGV[4])
end
return changed
