"""Reasons on the wire and error classes in the code are the same list, for every service that has both."""

import importlib
import inspect

import pytest

from services.kit import errors as kit
from services.kit.errors import Code, ServiceError
from tests.architecture.source import ROOT, files

SERVICES = sorted(path.parents[1].name for path in (ROOT / "services").glob("*/domain/errors.py"))
KIT_REASONS = {kit.Unauthenticated.reason, kit.KeysUnavailable.reason, kit.StoreUnavailable.reason}


def error_classes(service: str) -> list[type[ServiceError]]:
    """Return the classes of domain/errors.py that are raised: those that set their own reason."""
    module = importlib.import_module(f"services.{service}.domain.errors")
    members = [value for _, value in inspect.getmembers(module, inspect.isclass)]
    return [one for one in members if issubclass(one, ServiceError) and "reason" in vars(one) and one.reason]


def wire_reasons(service: str) -> set[str]:
    module = importlib.import_module(f"koikoi.{service}.v1.{service}_service_pb2")
    names = set(module.Reason.keys()) - {"REASON_UNSPECIFIED"}
    return {name.removeprefix("REASON_") for name in names}


def test_every_service_was_found():
    assert SERVICES == ["auth", "lobby", "match", "ranking"]


@pytest.mark.parametrize("service", SERVICES)
def test_reasons_and_classes_pair(service):
    own = {one.reason for one in error_classes(service) if not one.__module__.startswith("services.kit")}
    assert own <= wire_reasons(service), "a class has a reason that the proto does not list"
    assert wire_reasons(service) - own <= KIT_REASONS, "the proto lists a reason that nothing raises"


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_lists_the_reasons_that_kit_raises_for_it(service):
    source = "".join(path.read_text() for path in files(f"services/{service}"))
    if "AccessTokenVerifier(" in source and "except (Unauthenticated" not in source:
        assert "ACCESS_TOKEN_INVALID" in wire_reasons(service)
    if "KeySet(" in source and "except KeysUnavailable" not in source and service != "auth":
        assert "KEYS_UNAVAILABLE" in wire_reasons(service)
    assert {kit.StoreUnavailable.reason} <= wire_reasons(service)


@pytest.mark.parametrize("service", SERVICES)
def test_every_class_has_a_code_and_its_service_as_domain(service):
    for one in error_classes(service):
        if one.__module__.startswith("services.kit"):
            continue
        assert isinstance(one.code, Code), one
        assert one.domain == f"{service}.koikoi", one


@pytest.mark.parametrize("service", SERVICES)
def test_one_reason_has_one_code(service):
    codes: dict[str, set[Code]] = {}
    for one in error_classes(service):
        codes.setdefault(one.reason, set()).add(one.code)
    assert {reason: found for reason, found in codes.items() if len(found) > 1} == {}
