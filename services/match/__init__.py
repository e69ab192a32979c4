"""The blind relay: order, durability, resume, presence, deadlines, outcomes. It never opens an envelope."""
