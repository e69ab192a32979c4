-- Closes the open room of a host; the code stays taken for a while, so that it never leads into a stranger's room.
-- KEYS[1] room   ARGV: account, request id, now in ms, life of the key in ms, channel, code
-- Answers 1 when this request closed the room, now or before, else 0.
local room = redis.call('HMGET', KEYS[1], 'state', 'host_account', 'alive_until', 'closed_by')
if room[2] ~= ARGV[1] then
  return 0
end
if room[1] == 'open' and tonumber(room[3]) > tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], 'state', 'closed', 'closed_by', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PUBLISH', ARGV[5], ARGV[6])
  return 1
end
return room[4] == ARGV[2] and 1 or 0
