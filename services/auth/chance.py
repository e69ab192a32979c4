"""Randomness of the operating system."""

import secrets


class SystemChance:
    """Implements `ports.Chance`."""

    def bytes(self, size: int) -> bytes:
        """Return `size` random bytes."""
        return secrets.token_bytes(size)

    def below(self, bound: int) -> int:
        """Return a random number from 0 up to but without `bound`."""
        return secrets.randbelow(bound)
