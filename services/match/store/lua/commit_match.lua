-- Replaces one state of a match by the next, atomically: append, creation, presence, closing are all this step.
-- KEYS: 1 the match (hash), 2 its bucket's deadlines (sorted set), 3 its bucket's closed matches (sorted set),
--       4 its bucket's processes (sorted set)
-- ARGV: 1 expected revision ('' when the match must not exist), 2 new revision, 3 match id, 4 state, 5 contract,
--       6 '1' when the last envelope changed, 7 the last envelope, 8 deadline in ms ('' when the match closes),
--       9 the bucket's channel, 10 the process ('' unless presence changed), 11 now in ms,
--       12 for how long only the process that closes a match records it, in ms
-- Answers 1, or what is stored instead: {revision, contract, state, sealed, credit}.
local revision = redis.call('HGET', KEYS[1], 'revision') or ''
if revision ~= ARGV[1] then
  return redis.call('HMGET', KEYS[1], 'revision', 'contract', 'state', 'sealed', 'credit')
end
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'contract', ARGV[5], 'state', ARGV[4], 'credit', '0')
if ARGV[6] == '1' then
  redis.call('HSET', KEYS[1], 'sealed', ARGV[7])
end
if ARGV[10] ~= '' then
  redis.call('ZADD', KEYS[4], 'GT', ARGV[11], ARGV[10]) -- else presence could name a process that nobody knows to die
end
if ARGV[8] ~= '' then
  redis.call('ZADD', KEYS[2], ARGV[8], ARGV[3])
else
  redis.call('ZREM', KEYS[2], ARGV[3])
  redis.call('ZADD', KEYS[3], ARGV[11] + ARGV[12], ARGV[3]) -- scored by when another process may record it
end
redis.call('SPUBLISH', ARGV[9], ARGV[3] .. ARGV[2])
return 1
