"""The client's I/O: services through the gateway, the relay through either door, and the durable session.

Import the modules one by one: a command that only signs in needs neither the relay's doors nor the table.
"""

__all__ = [
    "account", "backoff", "connect", "contract", "errors", "home", "invites", "lobby", "match", "openid", "outbox",
    "players", "ranking", "redirect", "session", "streaming", "trace", "transport", "version",
]  # fmt: skip
