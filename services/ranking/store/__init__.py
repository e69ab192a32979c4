"""Where results are kept: Postgres, schema `ranking`; limits of calls: Redis."""
