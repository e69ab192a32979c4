"""The public HTTP door: the Connect protocol for public RPCs, key sets, health. Holds no state, knows no rule."""
