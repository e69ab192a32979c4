-- Notes somebody at the door of an open room that needs approval, or that the stream is still there.
-- KEYS[1] room   KEYS[2] knocks
-- ARGV: account, generation of the stream, now in ms, alive until in ms, most knocks, channel, code,
--       mode: `open` (a new stream takes over) or `renew` (never from a newer one), the rest of the entry
-- Entries are `until generation rest`. Answers 1 when the account knocks, 0 when there is no such door for it, -1 when
-- too many are there. Safe to run twice.
local room = redis.call('HMGET', KEYS[1], 'state', 'alive_until', 'approval', 'barred')
if room[1] ~= 'open' or tonumber(room[2]) <= tonumber(ARGV[3]) or room[3] ~= '1'
    or string.find(room[4] or '', ' ' .. ARGV[1] .. ' ', 1, true) then
  return 0
end
local count, held = 0, nil
local entries = redis.call('HGETALL', KEYS[2])
for i = 1, #entries, 2 do
  local ends, generation = string.match(entries[i + 1], '^(%d+) (%x+) ')
  if tonumber(ends) <= tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[2], entries[i])
  elseif entries[i] == ARGV[1] then
    held = generation
  else
    count = count + 1
  end
end
if held and held ~= ARGV[2] and ARGV[8] == 'renew' then
  return 1
end
if not held and count >= tonumber(ARGV[5]) then
  return -1
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[4] .. ' ' .. ARGV[2] .. ' ' .. ARGV[9])
redis.call('PEXPIRE', KEYS[2], math.max(1, ARGV[4] - ARGV[3]))
if not held then
  redis.call('PUBLISH', ARGV[6], ARGV[7])
end
return 1
