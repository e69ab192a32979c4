"""Rooms and their index in Redis."""
