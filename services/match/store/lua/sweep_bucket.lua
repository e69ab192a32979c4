-- Says that a process lives and, once per interval over all processes, finds what is due in one bucket.
-- Time in which nobody swept is not charged: it becomes credit of every open match, and their revisions change.
-- KEYS: 1 when the bucket was last swept, 2 deadlines (sorted set), 3 closed matches (sorted set), 4 processes (sorted set)
-- ARGV: 1 now, 2 interval, 3 longest gap, 4 longest silence of a process (all ms), 5 process, 6 a fresh revision,
--       7 prefix of the matches' keys (same slot), 8 the bucket's channel, 9 most matches to return,
--       10 for how long nobody else is given a closed match
-- Answers {due ids, closed ids, dead processes with times, all open ids if a process is dead, gap}, or 0.
local now, interval, longest_gap = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local last = tonumber(redis.call('GET', KEYS[1]) or now - interval)
local gap = now - last
redis.call('ZADD', KEYS[4], 'GT', ARGV[1], ARGV[5])
if gap < interval and gap >= -longest_gap then -- a clock far ahead of this one must not stop the sweeps
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
if gap > longest_gap then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    if redis.call('EXISTS', ARGV[7] .. id) == 1 then
      redis.call('ZINCRBY', KEYS[2], gap, id)
      redis.call('HINCRBY', ARGV[7] .. id, 'credit', gap)
      redis.call('HSET', ARGV[7] .. id, 'revision', ARGV[6])
      redis.call('SPUBLISH', ARGV[8], id .. ARGV[6])
    else
      redis.call('ZREM', KEYS[2], id) -- half a match would never be whole again
    end
  end
else
  gap = 0
end
local dead = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now - tonumber(ARGV[4]), 'WITHSCORES')
local doubtful = {}
if #dead > 0 then
  doubtful = redis.call('ZRANGE', KEYS[2], 0, -1)
end
local due = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1], 'LIMIT', 0, ARGV[9])) do
  if redis.call('EXISTS', ARGV[7] .. id) == 1 then
    table.insert(due, id)
  else
    redis.call('ZREM', KEYS[2], id) -- nothing could end it, and a hundred of them would hide all others for ever
  end
end
local closed = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[1], 'LIMIT', 0, ARGV[9])
for _, id in ipairs(closed) do
  redis.call('ZADD', KEYS[3], now + tonumber(ARGV[10]), id)
end
return {due, closed, dead, doubtful, gap}
