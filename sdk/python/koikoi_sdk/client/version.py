"""What this client calls itself where a service wants to know."""

from __future__ import annotations

CLIENT_VERSION = "koikoi-sdk/0.1.0"
