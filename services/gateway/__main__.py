"""`python -m services.gateway`."""

from __future__ import annotations

from services.gateway.app import build
from services.kit.app import run

if __name__ == "__main__":
    run("gateway", build)
