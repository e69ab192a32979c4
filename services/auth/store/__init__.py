"""Where auth keeps things: Postgres what must last, Redis what may be lost."""
