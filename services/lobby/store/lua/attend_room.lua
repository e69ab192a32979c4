-- Keeps an open room alive for the stream of its host.
-- KEYS[1] room   ARGV: account, generation of the stream, now in ms, new alive_until in ms, life of the key in ms,
--                channel, code, mode: `open` (a new stream takes over), `renew` (an old one goes on), `revive`
-- Answers 1 when the room lives on, 2 when it was dead (only `revive` makes it live again), 0 when it is not open or not
-- this account's. Safe to run twice.
local room = redis.call('HMGET', KEYS[1], 'state', 'host_account', 'alive_until', 'stream', 'away')
if room[1] ~= 'open' or room[2] ~= ARGV[1] then
  return 0
end
if tonumber(room[3]) <= tonumber(ARGV[3]) and ARGV[8] ~= 'revive' then
  return 2
end
redis.call('HSET', KEYS[1], 'alive_until', ARGV[4], 'away', '0')
if ARGV[8] == 'open' or (room[4] or '') == '' then
  redis.call('HSET', KEYS[1], 'stream', ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
if room[5] == '1' or ARGV[8] == 'revive' then
  redis.call('PUBLISH', ARGV[6], ARGV[7])
end
return 1
