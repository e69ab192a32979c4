-- Keeps the first signature of a contract.
-- KEYS[1] room   ARGV: match id, JWS
-- Answers the kept signature, or nothing when the room or its contract is another.
if redis.call('HGET', KEYS[1], 'match_id') ~= ARGV[1] then
  return false
end
redis.call('HSETNX', KEYS[1], 'jws', ARGV[2])
return redis.call('HGET', KEYS[1], 'jws')
