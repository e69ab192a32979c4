-- Claims a code and writes the room.
-- KEYS[1] room   ARGV: room id, life of the key in ms, then fields and values
-- Answers 1 when the room is there, 0 when the code belongs to another. Safe to run twice.
local holder = redis.call('HGET', KEYS[1], 'room_id')
if holder then
  return holder == ARGV[1] and 1 or 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
