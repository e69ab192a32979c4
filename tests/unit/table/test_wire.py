"""The wire table against docs/protocol.md sections 4, 9, 18 and 19, every number typed by hand."""

import pytest
from koikoi_sdk.table import TRANSITIONS, Kind, Phase
from koikoi_sdk.table.codec import FORMS, phase_of
from koikoi_sdk.table.envelope import OVERHEAD, Signed
from koikoi_sdk.table.errors import RemoteProtocolError

WIRE = {
    "COIN_OPEN": (1, 1, 512, (32,)),
    "S1": (10, 2, 9216, (7872,)),
    "S2": (11, 2, 9216, (8448,)),
    "S3": (12, 3, 512, (392, 464)),
    "S4": (13, 3, 512, (1, 73)),
    "T1": (20, 4, 512, (67,)),
    "T2": (21, 4, 512, (96,)),
    "T3": (22, 4, 512, (67,)),
    "AU1": (30, 5, 512, (64,)),
    "AU2": (31, 5, 512, (96,)),
    "AU3": (32, 5, 3584, ()),
    "AU4": (33, 5, 3584, ()),
    "RESULT_SIGN": (40, 6, 512, (64,)),
    "NEXT": (50, 2, 512, (0,)),
    "RESIGN": (51, 6, 512, (64,)),
}
SUCCESSIONS = ["0-0", "0-1", "1-2", "2-2", "2-3", "3-2", "3-3", "3-4", "3-5", "4-4", "4-5", "5-5", "5-2", "6-6"]


def test_the_wire_table_is_that_of_the_protocol():
    assert {kind.name: (int(kind), int(form.phase), form.size, form.lengths) for kind, form in FORMS.items()} == WIRE


def test_envelopes_have_three_sizes():
    assert sorted({form.size + OVERHEAD for form in FORMS.values()}) == [653, 3725, 9357]


def test_the_relay_lets_every_succession_pass_that_the_table_allows():
    """Section 18: the relay refuses other successions of phases, so the state machine must not make one."""
    made = {
        f"{phase_of(kind)}-{phase_of(after)}"
        for kind, follow in TRANSITIONS.items()
        for after in follow
        if after is not None and kind is not Kind.RESIGN
    }
    assert made <= {*SUCCESSIONS, "5-6"}
    assert phase_of(Kind.RESIGN) == Phase.CLOSING  # x-6 is allowed for every x


@pytest.mark.parametrize("length", [0, 1, 510])
def test_a_payload_is_cut_by_its_length(length: int):
    content = length.to_bytes(2, "big") + b"p" * length + bytes(510 - length)
    assert Signed(bytes(37) + content, b"").payload == b"p" * length


@pytest.mark.parametrize(
    "content", [b"\x01\xff" + bytes(510), b"\x00\x00" + bytes(509) + b"\x01", b"\xff\xff" + bytes(510)]
)
def test_padding_is_zero_and_lengths_fit(content: bytes):
    with pytest.raises(RemoteProtocolError):
        _ = Signed(bytes(37) + content, b"").payload
