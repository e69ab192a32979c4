-- Takes the second seat and fixes the contract, if the room is still the one that was looked at, open, alive and open to
-- this guest; where the host approves, only for the stream that still knocks.
-- KEYS[1] room   KEYS[2] knocks
-- ARGV: room id, guest's account, guest's device key, now in ms, life of the key in ms, channel, code,
--       generation of the accepted knock ('' for none), then fields and values of the seat and the contract
-- Answers the fields of the room after it, whoever has the seat. Safe to run twice: the second changes nothing.
local room = redis.call('HMGET', KEYS[1], 'room_id', 'state', 'host_account', 'host_key', 'alive_until', 'barred',
  'approval')
local function is_let_in()
  if room[7] ~= '1' then
    return true
  end
  local knock = redis.call('HGET', KEYS[2], ARGV[2])
  return knock and string.match(knock, '^%d+ (%x+) ') == ARGV[8]
end
if room[1] == ARGV[1] and room[2] == 'open' and room[3] ~= ARGV[2] and room[4] ~= ARGV[3]
    and tonumber(room[5]) > tonumber(ARGV[4])
    and not string.find(room[6] or '', ' ' .. ARGV[2] .. ' ', 1, true) and is_let_in() then
  redis.call('HSET', KEYS[1], 'state', 'ready', unpack(ARGV, 9))
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('PUBLISH', ARGV[6], ARGV[7])
end
return redis.call('HGETALL', KEYS[1])
