-- What has to outlive the lobby's Redis.

CREATE TABLE block (
    account_id  text NOT NULL,
    blocked_id  text NOT NULL,
    create_time timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, blocked_id)
);
COMMENT ON TABLE block IS 'Whom an account does not want to meet; at most 200 rows an account. Copied into every room it opens.';
COMMENT ON COLUMN block.blocked_id IS 'Sees no room of account_id.';
