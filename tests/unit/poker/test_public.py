"""The public list of the package is complete and true."""

from types import ModuleType

from koikoi_sdk import poker


def test_everything_exported_exists_and_everything_imported_is_exported() -> None:
    names = {
        name for name, value in vars(poker).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert names == set(poker.__all__)
    assert poker.__all__ == sorted(poker.__all__)


def test_the_reasons_are_the_bytes_of_the_protocol() -> None:
    assert {reason.name: reason.value for reason in poker.Reason} == {
        "FORM": 1,
        "SIGNATURE": 2,
        "PROOF": 4,
        "CARD": 5,
        "POSITION": 6,
        "AUDIT": 9,
    }
