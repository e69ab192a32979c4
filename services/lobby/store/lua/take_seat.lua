-- Takes the second seat and fixes the contract, if the room is still the one that was looked at, open and alive.
-- KEYS[1] room   ARGV: room id, guest's account, guest's device key, now in ms, life of the key in ms,
--                then fields and values of the seat and the contract
-- Answers the fields of the room after it, whoever has the seat. Safe to run twice: the second changes nothing.
local room = redis.call('HMGET', KEYS[1], 'room_id', 'state', 'host_account', 'host_key', 'alive_until')
if room[1] == ARGV[1] and room[2] == 'open' and room[3] ~= ARGV[2] and room[4] ~= ARGV[3]
    and tonumber(room[5]) > tonumber(ARGV[4]) then
  redis.call('HSET', KEYS[1], 'state', 'ready', unpack(ARGV, 6))
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
return redis.call('HGETALL', KEYS[1])
