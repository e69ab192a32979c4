"""Who may send what next, who is late, and how a match ends. Pure: no I/O, no clock, no randomness."""
