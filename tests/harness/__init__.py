"""What tests of several parts share: a clock, embedded servers, running services, access tokens."""

from tests.harness.apps import running_app
from tests.harness.clock import FakeClock
from tests.harness.stores import Stores
from tests.harness.tokens import AUDIENCE, AUTH_ISSUER, Issuer, make_caller

__all__ = ["AUDIENCE", "AUTH_ISSUER", "FakeClock", "Issuer", "Stores", "make_caller", "running_app"]
