-- Reads a room; the host of an open room keeps it alive by looking.
-- KEYS[1] room   ARGV: account, now in ms, new alive_until in ms, life of the key in ms, channel, code
-- Answers the fields of the room.
local room = redis.call('HMGET', KEYS[1], 'state', 'host_account', 'alive_until', 'away')
if room[1] == 'open' and room[2] == ARGV[1] and tonumber(room[3]) > tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'alive_until', ARGV[3], 'away', '0')
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  if room[4] == '1' then
    redis.call('PUBLISH', ARGV[5], ARGV[6])
  end
end
return redis.call('HGETALL', KEYS[1])
