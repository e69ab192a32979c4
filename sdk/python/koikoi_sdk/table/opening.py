"""HELLO, COIN_OPEN and NEXT: from two contracts to a channel, a first dealer and a round (sections 8, 9)."""

from __future__ import annotations

from koikoi_sdk.poker import coin
from koikoi_sdk.rules import start_match
from koikoi_sdk.table.codec import Kind
from koikoi_sdk.table.hello import Hello, build_hello, open_channel, parse_hello, require_usable
from koikoi_sdk.table.memory import Table
from koikoi_sdk.table.state import Round


def build_greeting(table: Table) -> bytes:
    """Make this device's HELLO. A's nonce commits to its coin share, B's nonce is its share."""
    state, contract = table.state, table.contract
    if not state.secret:
        state.secret = bytearray(table.draw("x25519"))
    share = table.draw("hello")
    if table.seat != contract.seat_a:
        return build_hello(contract, table.device, state.secret, share).data
    state.share = share
    commitment = coin.commit(contract.hash, *_keys(table), share)
    return build_hello(contract, table.device, state.secret, commitment).data


def accept_greeting(table: Table, data: bytes) -> None:
    """Check the peer's HELLO. B draws its own X25519 secret then, since the check needs one.

    Raises:
        TransportError: Form or signature; nothing has changed.
        RemoteProtocolError: VERSION.
    """
    hello = parse_hello(table.contract, table.peer, data)
    if not table.state.secret:
        table.state.secret = bytearray(table.draw("x25519", table.state.counter + 1))
    require_usable(hello, table.state.secret)


def after_greeting(table: Table, data: bytes) -> Kind:
    """Note one of the two HELLOs; with the second one the channel is open."""
    state = table.state
    state.hellos = (*state.hellos, data)
    if len(state.hellos) == 1:
        return Kind.HELLO
    state.channel, state.head = open_channel(table.contract, table.seat, state.secret, _hellos(table))
    state.secret[:] = bytes(len(state.secret))
    state.secret.clear()
    return Kind.COIN_OPEN


def build_coin(table: Table) -> bytes:
    """Open the coin: A's share."""
    return table.state.share


def accept_coin(table: Table, payload: bytes) -> None:
    """Check A's share against its commitment, and keep it."""
    first, _ = _hellos(table)
    coin.require_opening(first.nonce, table.contract.hash, *_keys(table), payload)
    table.state.share = payload


def after_coin(table: Table) -> Kind:
    """Begin the match with the dealer that the toss names."""
    state, contract = table.state, table.contract
    _, second = _hellos(table)
    b_deals = coin.toss(table.channel.session_id, state.share, second.nonce)
    dealer = 1 - contract.seat_a if b_deals else contract.seat_a
    state.match = start_match(contract.rules.variant, dealer)
    state.hellos, state.share = (), b""
    return begin_round(table)


def begin_round(table: Table) -> Kind:
    """Set up the next round of the match: S1 is due, after a NEXT if the other seat owes."""
    match = table.match
    table.state.round = Round(match.round_no, match.dealer)
    return Kind.S1 if table.owing == match.dealer else Kind.NEXT


def build_next(table: Table) -> bytes:
    """Make NEXT, which is empty and hands the turn to the dealer."""
    return b""


def accept_next(table: Table, payload: bytes) -> None:
    """Accept NEXT, whose length was checked."""


def after_next(table: Table) -> Kind:
    """Name what is due now."""
    return Kind.S1


def _hellos(table: Table) -> tuple[Hello, Hello]:
    first, second = table.state.hellos
    a = table.contract.seat_a
    return parse_hello(table.contract, a, first), parse_hello(table.contract, 1 - a, second)


def _keys(table: Table) -> tuple[bytes, bytes]:
    a = table.contract.seat_a
    return table.contract.keys[a], table.contract.keys[1 - a]
