"""What a room is, who may see and enter it, and what its contract says. Pure."""
