-- Lets an account go, if its pointer is still the one that was read.
-- KEYS[1] pointer   ARGV: the pointer as it was read
-- Answers 1 when it is gone by this, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
