"""Names the trace that a call begins (https://www.w3.org/TR/trace-context), so that it can be found again."""

from __future__ import annotations

import secrets

HEADER = "traceparent"


def new_traceparent() -> str:
    """Begin a new trace; whether the services record anything of it is for them to decide."""
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"
