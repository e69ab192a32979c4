"""What a result must be to count, and what it does to ratings. Pure: no clock, no store, no network."""
