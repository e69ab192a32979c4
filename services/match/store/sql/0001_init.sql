-- Matches that have ended, one row each. What the relay knew; nothing of the play.
CREATE TABLE ended_match (
    match_id       uuid PRIMARY KEY,
    contract_hash  bytea NOT NULL CHECK (octet_length(contract_hash) = 32),
    account_0      text NOT NULL,
    account_1      text NOT NULL,
    outcome        text NOT NULL CHECK (outcome IN
                   ('finished', 'resigned', 'stalled', 'abandoned', 'disputed', 'expired', 'never_started')),
    seat           smallint CHECK (seat IN (0, 1)),
    dispute_reason smallint NOT NULL CHECK (dispute_reason BETWEEN 0 AND 13),
    counter        bigint NOT NULL CHECK (counter >= 0),
    phase          smallint CHECK (phase BETWEEN 0 AND 6),
    create_time    timestamptz NOT NULL,
    end_time       timestamptz NOT NULL
);
COMMENT ON TABLE ended_match IS 'One row per ended match: how it ended and whom that charges.';
COMMENT ON COLUMN ended_match.seat IS 'The seat charged: resigned, stalled, abandoned; else null.';
COMMENT ON COLUMN ended_match.dispute_reason IS 'Reason byte of docs/protocol.md section 19; 0 when no device gave one.';
COMMENT ON COLUMN ended_match.phase IS 'Phase of the last envelope; null when none is known.';
