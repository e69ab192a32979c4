-- Points an account to the room it enters or is in, if nobody else moved the pointer since it was read.
-- KEYS[1] pointer   ARGV: new pointer, expected pointer ('' for none), life in ms
-- Pointers are `code|until`. Answers 1 when the pointer is the new one or names its code already, else 0. Safe to run
-- twice.
local held = redis.call('GET', KEYS[1]) or ''
local code = string.match(ARGV[1], '^[^|]*')
if held ~= ARGV[2] and string.match(held, '^[^|]*') ~= code then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
