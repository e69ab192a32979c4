-- Keeps an account out of a host's open room.
-- KEYS[1] room   KEYS[2] knocks   ARGV: host's account, account, now in ms, most accounts, channel, code
-- Answers 1 when the account is kept out, 0 when this is no open room of the host, -1 when too many are kept out.
local room = redis.call('HMGET', KEYS[1], 'state', 'host_account', 'alive_until', 'barred')
if room[1] ~= 'open' or room[2] ~= ARGV[1] or tonumber(room[3]) <= tonumber(ARGV[3]) then
  return 0
end
local barred = room[4] or ''
if string.find(barred, ' ' .. ARGV[2] .. ' ', 1, true) then
  return 1
end
local _, count = string.gsub(barred, '%S+', '')
if count >= tonumber(ARGV[4]) then
  return -1
end
redis.call('HSET', KEYS[1], 'barred', (barred == '' and ' ' or barred) .. ARGV[2] .. ' ')
redis.call('HDEL', KEYS[2], ARGV[2])
redis.call('PUBLISH', ARGV[5], ARGV[6])
return 1
