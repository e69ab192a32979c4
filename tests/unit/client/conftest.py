import os

import pytest


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process needs no fsync, only a power cut does."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
