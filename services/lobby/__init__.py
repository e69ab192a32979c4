"""Rooms in which two players meet, and the match contracts they take away."""
