-- How accounts behaved in their last matches: the account of conduct has to outlive every loss of Redis.

CREATE TABLE mark (
    account_id  text NOT NULL,
    match_id    uuid NOT NULL,
    opponent_id text NOT NULL,
    behaviour   text NOT NULL CHECK (behaviour IN ('completed', 'charged', 'disputed')),
    end_time    timestamptz NOT NULL,
    PRIMARY KEY (account_id, match_id)
);
CREATE INDEX mark_newest ON mark (account_id, end_time DESC, match_id DESC);
COMMENT ON TABLE mark IS 'What a match says about one of its players; the newest 30 of an account are kept (docs/conduct.md).';
