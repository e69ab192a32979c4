"""What the gateway knows of a method. Which ones are public is listed in tests/architecture/test_public_methods.py."""

from google.protobuf import descriptor_pool

from services.gateway.methods import ISSUERS, key_set_method, public_methods


def test_methods_know_their_backend_and_messages():
    for path, method in public_methods().items():
        assert path.split(".")[1] == method.backend
        assert path == f"/koikoi.{method.backend}.v1.{method.backend.title()}Service/{method.name}"
        assert method.request_type.DESCRIPTOR.name == f"{method.name}Request"
        assert method.response_type.DESCRIPTOR.name == f"{method.name}Response"


def test_the_relay_itself_is_not_offered_over_http():
    service = descriptor_pool.Default().FindServiceByName("koikoi.match.v1.MatchService")
    assert "Relay" in service.methods_by_name
    assert "/koikoi.match.v1.MatchService/Relay" not in public_methods()


def test_every_issuer_tells_its_keys():
    assert [key_set_method(issuer).path in public_methods() for issuer in ISSUERS] == [True] * 3


def test_only_reading_methods_answer_a_get():
    safe = {method.name for method in public_methods().values() if method.is_safe}
    assert not [name for name in safe if not name.startswith(("Get", "List", "Preview", "Watch"))]
