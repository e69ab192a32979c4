"""The rules of sign-in, sessions and profiles. Pure: no I/O, no clock, no chance; those are arguments."""
