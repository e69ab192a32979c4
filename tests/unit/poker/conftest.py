import pytest
from koikoi_sdk.poker import group

IMPLEMENTATIONS = ["libsodium", "own C"] if group.ACCELERATED else ["libsodium"]


@pytest.fixture(params=IMPLEMENTATIONS)
def each_implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs are checked once with libsodium alone and once with the C library, where that was built."""
    if request.param == "libsodium":
        monkeypatch.setattr(group, "native_weighted_sum", None)
