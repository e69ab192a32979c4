-- Names that owners give their devices. Code that does not know the column goes on without it.

ALTER TABLE devices ADD COLUMN name text CHECK (octet_length(name) BETWEEN 1 AND 400);
COMMENT ON COLUMN devices.name IS 'What the owner calls the device, else nothing: then the name its session gave counts. Stays when it signs in again.';

-- Lists devices, those whose session ended lately too (sessions_account holds live ones only).
CREATE INDEX sessions_devices ON sessions (account_id, device_id);
