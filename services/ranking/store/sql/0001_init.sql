-- Results that both devices signed, and the ratings that follow from them.

CREATE TABLE account (
    account_id   text PRIMARY KEY,
    display_name text NOT NULL,
    mu           double precision NOT NULL,
    sigma        double precision NOT NULL,
    rating       integer NOT NULL,
    matches      integer NOT NULL DEFAULT 0,
    wins         integer NOT NULL DEFAULT 0
);
COMMENT ON TABLE account IS
    'The rating of every account that ever handed in a result. Follows from the results alone: `rebuild` makes it anew. '
    'Its rows are also the locks that put the results of an account in order.';
COMMENT ON COLUMN account.rating IS 'The shown number, computed from mu and sigma.';
COMMENT ON COLUMN account.matches IS 'Rated matches only.';

CREATE INDEX account_leaderboard ON account (rating DESC, account_id) WHERE matches > 0;

CREATE TABLE result (
    order_number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    match_id      uuid NOT NULL UNIQUE,
    session_id    bytea NOT NULL UNIQUE,
    contract      text NOT NULL,
    contract_hash bytea NOT NULL,
    lobby_key_id  text NOT NULL,
    lobby_key     bytea NOT NULL,
    statement     bytea NOT NULL,
    signature_0   bytea NOT NULL,
    signature_1   bytea NOT NULL,
    is_rated      boolean NOT NULL,
    ending        smallint NOT NULL,
    winner        smallint CHECK (winner IN (0, 1)),
    rounds        smallint NOT NULL,
    create_time   timestamptz NOT NULL
);
COMMENT ON TABLE result IS
    'The log of results, one row a match, never changed. Holds all it takes to verify a result again, the lobby''s key included.';
COMMENT ON COLUMN result.order_number IS
    'Given under the locks of both accounts, so the results of every account are in the order in which they were rated.';
COMMENT ON COLUMN result.winner IS 'The seat, null for a draw.';

CREATE TABLE result_seat (
    order_number bigint NOT NULL REFERENCES result,
    seat         smallint NOT NULL CHECK (seat IN (0, 1)),
    account_id   text NOT NULL REFERENCES account,
    display_name text NOT NULL,
    points       integer NOT NULL,
    mu_before    double precision NOT NULL,
    sigma_before double precision NOT NULL,
    mu_after     double precision NOT NULL,
    sigma_after  double precision NOT NULL,
    PRIMARY KEY (order_number, seat)
);
COMMENT ON TABLE result_seat IS
    'What a result meant for each of its two seats. The ratings follow from the log: `rebuild` makes them anew.';

CREATE INDEX result_seat_account ON result_seat (account_id, order_number);

CREATE TABLE conflict (
    match_id       uuid NOT NULL,
    statement_hash bytea NOT NULL,
    contract       text NOT NULL,
    statement      bytea NOT NULL,
    signature_0    bytea NOT NULL,
    signature_1    bytea NOT NULL,
    create_time    timestamptz NOT NULL,
    PRIMARY KEY (match_id, statement_hash)
);
COMMENT ON TABLE conflict IS
    'Fully signed results that contradict a recorded one. Both devices signed two stories, so this is evidence; at most 8 a match.';
