"""One seat at the table."""
