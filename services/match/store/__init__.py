"""Redis for what is running, Postgres for what has ended."""
