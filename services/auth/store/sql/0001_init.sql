-- Accounts, the identities that open them, their device keys, sessions and answered requests.

CREATE TABLE accounts (
    account_id   uuid PRIMARY KEY,
    display_name text NOT NULL CHECK (octet_length(display_name) BETWEEN 1 AND 200),
    avatar       text NOT NULL CHECK (octet_length(avatar) BETWEEN 1 AND 256),
    create_time  double precision NOT NULL
);
COMMENT ON TABLE accounts IS 'One row per player; account_id is random and is all that other services ever learn. Times in this schema are unix seconds.';

CREATE TABLE identities (
    issuer     text NOT NULL,
    subject    text NOT NULL,
    -- Deferred: the identity is claimed first, and only the claimant creates the account.
    account_id uuid NOT NULL UNIQUE REFERENCES accounts DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (issuer, subject)
);
COMMENT ON TABLE identities IS 'Who the identity provider says opens an account; the subject never leaves this table.';

CREATE TABLE devices (
    device_key  bytea PRIMARY KEY CHECK (octet_length(device_key) = 32),
    account_id  uuid NOT NULL REFERENCES accounts,
    create_time double precision NOT NULL
);
COMMENT ON TABLE devices IS 'Which account a device key belongs to, for ever: rows are never moved or deleted.';

CREATE TABLE sessions (
    session_id     uuid PRIMARY KEY,
    device_id      uuid NOT NULL,
    account_id     uuid NOT NULL REFERENCES accounts,
    device_key     bytea NOT NULL REFERENCES devices,
    device_name    text NOT NULL,
    seed           bytea NOT NULL,
    generation     integer NOT NULL CHECK (generation >= 0),
    token_hash     bytea NOT NULL,
    previous_hash  bytea,
    rotate_time    double precision NOT NULL,
    expire_time    double precision NOT NULL,
    create_time    double precision NOT NULL,
    challenge_hash bytea NOT NULL UNIQUE,
    request_id     text NOT NULL,
    content_hash   bytea NOT NULL,
    is_new_account boolean NOT NULL,
    end_time       double precision,
    end_reason     text CHECK (end_reason IN ('signed_out', 'replaced', 'reused')),
    is_announced   boolean NOT NULL DEFAULT false,
    UNIQUE (device_key, request_id),
    CHECK ((end_time IS NULL) = (end_reason IS NULL))
);
COMMENT ON TABLE sessions IS 'One refresh-token family per sign-in, with hashes of its two newest tokens; challenge_hash makes a challenge good for one sign-in. Deleted a while after it ended or expired.';
CREATE UNIQUE INDEX sessions_live_device ON sessions (device_key) WHERE end_time IS NULL;
CREATE INDEX sessions_account ON sessions (account_id) WHERE end_time IS NULL;
CREATE INDEX sessions_unannounced ON sessions (end_time) WHERE end_reason = 'signed_out' AND NOT is_announced;
CREATE INDEX sessions_stale ON sessions (coalesce(end_time, expire_time));

CREATE TABLE requests (
    account_id   uuid NOT NULL REFERENCES accounts,
    request_id   text NOT NULL,
    content_hash bytea NOT NULL,
    create_time  double precision NOT NULL,
    PRIMARY KEY (account_id, request_id)
);
COMMENT ON TABLE requests IS 'Changes already made, so that a repeated call changes nothing again. Deleted after a day.';
CREATE INDEX requests_create_time ON requests (create_time);
