-- The devices choose the session id, and nothing here can check it: two friends may sign a result of a match of their own
-- under the session id of another match. Unique, it would keep that other match's result out. The match id is the lobby's.

ALTER TABLE result DROP CONSTRAINT result_session_id_key;
