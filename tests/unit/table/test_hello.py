import pytest
from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.table import Finished, Reason, Rejected, Seat, Send, Unreadable, Wait
from koikoi_sdk.table.contract import parse_contract
from koikoi_sdk.table.hello import build_hello
from nacl import bindings

from tests.unit.table.pair import Pair, contract_payload

CONTRACT = parse_contract(contract_payload())


def greeting(
    device: DeviceKey,
    versions: tuple[int, ...] = (1,),
    x25519: bytes | None = None,
    contract: bytes | None = None,
    count: int | None = None,
) -> bytes:
    """A greeting with a valid signature over whatever it says."""
    parsed = parse_contract(contract or contract_payload())
    peer = parsed.keys[1 - parsed.seat_of(device.public)]
    listed = bytes([len(versions) if count is None else count]) + b"".join(v.to_bytes(2, "big") for v in versions)
    public = bindings.crypto_scalarmult_base(b"x" * 32) if x25519 is None else x25519
    fields = (parsed.hash, device.public, peer, listed, public, b"n" * 32, parsed.rules_hash)
    return listed + public + b"n" * 32 + device.sign("hello", *fields)


def devices_by_role(pair: Pair) -> tuple[DeviceKey, DeviceKey]:
    return pair.devices[pair.a.seat], pair.devices[pair.b.seat]


def test_a_greets_first_and_b_waits():
    pair = Pair()
    assert isinstance(pair.a.step, Send)
    assert isinstance(pair.b.step, Wait)
    assert pair.flying.counter == pair.flying.phase == 0
    assert len(pair.flying.envelope) == 131


def test_the_protocols_greeting_is_built():
    pair = Pair()
    device_a, _ = devices_by_role(pair)
    assert build_hello(CONTRACT, device_a, b"x" * 32, b"n" * 32).data == greeting(device_a)


@pytest.mark.parametrize("versions", [(1,), (1, 2), (0, 1, 65535), (1, 2, 3, 4, 5, 6, 7, 8)])
def test_the_highest_common_version_is_spoken(versions: tuple[int, ...]):
    pair = Pair()
    device_a, device_b = devices_by_role(pair)
    assert isinstance(pair.b.receive(0, 0, greeting(device_a, versions)), Send)
    assert isinstance(pair.a.receive(1, 0, greeting(device_b, versions)), Send)


@pytest.mark.parametrize(
    "make",
    [
        lambda device: greeting(device, ()),
        lambda device: greeting(device, (1, 2, 3, 4, 5, 6, 7, 8, 9)),
        lambda device: greeting(device, (2, 1)),
        lambda device: greeting(device, (1, 1)),
        lambda device: greeting(device, (1, 2), count=1),
        lambda device: greeting(device, (1,), count=2),
        lambda device: greeting(device) + b"\0",
        lambda device: greeting(device)[:-1],
        lambda device: b"",
        lambda device: greeting(device)[:-1] + b"\0",
        lambda device: greeting(device, contract=contract_payload("house", 12)),
        lambda device: greeting(device, contract=contract_payload(overrides={"double_at": 9})),
    ],
)
def test_a_faulty_greeting_accuses_nobody(make):
    """The server could have made it: nothing changes, and the right one is still accepted."""
    pair = Pair()
    device_a, _ = devices_by_role(pair)
    before = pair.b.dump()
    assert isinstance(pair.b.receive(0, 0, make(device_a)), Unreadable)
    assert pair.b.dump() == before
    assert isinstance(pair.b.receive(0, 0, greeting(device_a)), Send)


def test_a_greeting_of_somebody_else_is_not_the_peers():
    pair = Pair()
    _, device_b = devices_by_role(pair)
    assert isinstance(pair.b.receive(0, 0, greeting(device_b)), Unreadable)


@pytest.mark.parametrize(("counter", "phase"), [(0, 1), (1, 0), (2, 0), (4, 1), (2**40, 0)])
def test_a_greeting_has_its_number_and_phase(counter: int, phase: int):
    pair = Pair()
    device_a, _ = devices_by_role(pair)
    assert isinstance(pair.b.receive(counter, phase, greeting(device_a)), Unreadable)


def test_a_does_not_take_its_own_greeting():
    pair = Pair()
    assert isinstance(pair.a.receive(0, 0, pair.flying.envelope), Unreadable)
    assert isinstance(pair.a.receive(1, 0, pair.flying.envelope), Unreadable)


@pytest.mark.parametrize("arguments", [{"versions": (2, 3)}, {"x25519": bytes(32)}, {"x25519": b"\x01" + bytes(31)}])
def test_without_common_version_or_secret_the_match_is_disputed(arguments):
    for role in (0, 1):
        pair = Pair()
        device, receiver = devices_by_role(pair)[role], (pair.b, pair.a)[role]
        step = receiver.receive(role, 0, greeting(device, **arguments))
        assert isinstance(step, Rejected)
        assert step.evidence.reason is Reason.VERSION
        assert step.evidence.body + step.evidence.signature == greeting(device, **arguments)
        assert receiver.step == step
        assert receiver.receive(role, 0, greeting(device)) == Wait()


def test_old_greetings_are_ignored():
    pair = Pair()
    pair.advance()
    pair.advance()
    for counter in (0, 1):
        for seat in pair.seats:
            before = seat.dump()
            assert seat.receive(counter, 0, b"anything") == Wait()
            assert seat.dump() == before


def test_both_devices_get_one_session():
    pair = Pair()
    pair.advance()
    pair.advance()
    states = [seat._state for seat in pair.seats]
    assert states[0].channel.session_id == states[1].channel.session_id
    assert states[0].channel.sending == states[1].channel.receiving
    assert states[1].channel.sending == states[0].channel.receiving
    assert not any(state.secret for state in states)


def test_each_session_has_its_own_keys():
    ids = set()
    for seed in (1, 2):
        pair = Pair(seed=seed)
        pair.advance()
        pair.advance()
        ids.add(pair.a._state.channel.session_id)
    assert len(ids) == 2


def test_both_devices_deal_first_in_about_half_of_the_matches():
    dealers = []
    for seed in range(40):
        pair = Pair(seed=seed)
        for _ in range(3):
            pair.advance()
        dealers.append(pair.b._state.round.dealer)
        assert pair.a._state.round.dealer == dealers[-1]
    assert 8 < sum(dealers) < 32


def test_seat_order_and_key_order_are_independent():
    """Seats are the contract's order, A and B the order of keys."""
    for swapped in (False, True):
        pair = Pair()
        devices = pair.devices[::-1] if swapped else pair.devices
        pair = Pair(contract_payload(devices=devices), devices=devices)
        assert pair.a.contract.keys[pair.a.seat] == min(device.public for device in devices)
        for _ in range(5):
            assert not isinstance(pair.advance(), Rejected | Unreadable | Finished)


def test_the_systems_generator_is_the_usual_one():
    device_a, _ = devices_by_role(Pair())
    assert len({Seat.start(contract_payload(), device_a).dump() for _ in range(3)}) == 3
