-- Histories of accounts: which results, against whom, with what outcome. All of it is in the log already, but not where one
-- account's rows lie together. A trigger writes it, so that processes of the release before this one do, too.

-- First, so that results being recorded and this file take their locks in the same order. The order of equal ratings is
-- that of the bytes, whatever the database's locale; this makes the indices that contain the id anew.
ALTER TABLE account ALTER COLUMN account_id TYPE text COLLATE "C";

-- Ranks are counted: equal ratings share an entry here, so that this is a tenth of the table.
CREATE INDEX account_rating ON account (rating) WHERE matches > 0;

CREATE TABLE appearance (
    account_id   text COLLATE "C" NOT NULL,
    order_number bigint NOT NULL REFERENCES result,
    opponent_id  text COLLATE "C" NOT NULL,
    outcome      smallint NOT NULL CHECK (outcome IN (-1, 0, 1)),
    ending       smallint NOT NULL,
    is_rated     boolean NOT NULL,
    create_time  timestamptz NOT NULL,
    PRIMARY KEY (account_id, order_number) INCLUDE (opponent_id, outcome, ending, is_rated, create_time)
);
COMMENT ON TABLE appearance IS
    'Every result once for each of its accounts, all in the index: an account''s history is read without the log''s wide rows. '
    'Follows from the log: `rebuild` makes it anew.';
COMMENT ON COLUMN appearance.outcome IS 'For the account: 1 won, 0 drawn, -1 lost.';

CREATE VIEW log_appearance AS
    SELECT own.account_id, order_number, other.account_id AS opponent_id,
        (CASE WHEN winner IS NULL THEN 0 WHEN winner = own.seat THEN 1 ELSE -1 END)::smallint AS outcome,
        ending, is_rated, create_time
    FROM result JOIN result_seat AS own USING (order_number) JOIN result_seat AS other USING (order_number)
    WHERE other.seat = 1 - own.seat;
COMMENT ON VIEW log_appearance IS 'What `appearance` holds, as it follows from the log.';

CREATE FUNCTION add_appearances() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO appearance SELECT * FROM log_appearance WHERE order_number = NEW.order_number;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION add_appearances IS 'Runs when a result''s second seat is written: then both are known.';

CREATE TRIGGER add_appearances AFTER INSERT ON result_seat
    FOR EACH ROW WHEN (NEW.seat = 1) EXECUTE FUNCTION add_appearances();

INSERT INTO appearance SELECT * FROM log_appearance;

DROP INDEX result_seat_account; -- nothing reads seats by account any more
