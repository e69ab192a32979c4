"""The sum that checks proofs: libsodium and the project's own C give the same sums and refuse the same."""

import ctypes
import importlib.util
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import SimpleNamespace
from typing import Any

import pytest
from koikoi_sdk.poker import group
from koikoi_sdk.poker.errors import ProofError, Reason
from koikoi_sdk.poker.group import public_weighted_sum

from tests.unit.poker.test_group import INVALID, POINT, scalar

each_implementation = pytest.mark.usefixtures("each_implementation")
MINUS_ONE = scalar(group.ORDER - 1)


@each_implementation
@pytest.mark.parametrize("factor", range(16))
def test_multiples_of_the_generator_are_those_of_repeated_addition(factor: int) -> None:
    """RFC 9496 appendix A.1; test_group holds libsodium to its bytes."""
    expected = group.add_all([group.IDENTITY, *[group.GENERATOR] * factor])
    assert public_weighted_sum([scalar(factor)], [group.GENERATOR]) == expected
    assert public_weighted_sum([group.ONE] * factor, [group.GENERATOR] * factor) == expected


@each_implementation
def test_sums_that_vanish_are_the_identity() -> None:
    opposite = group.subtract(group.IDENTITY, POINT)
    assert public_weighted_sum([], []) == group.IDENTITY
    assert public_weighted_sum([group.ZERO], [POINT]) == group.IDENTITY
    assert public_weighted_sum([scalar(5)], [group.IDENTITY]) == group.IDENTITY
    assert public_weighted_sum([MINUS_ONE, group.ONE], [POINT, POINT]) == group.IDENTITY
    assert public_weighted_sum([scalar(9), scalar(9)], [POINT, opposite]) == group.IDENTITY


@each_implementation
@pytest.mark.parametrize("size", [31, 32, 33, 64, 97])
def test_long_sums_are_whole(size: int) -> None:
    points = [group.multiply_base(scalar(index + 2)) for index in range(size)]
    scalars = [scalar(group.ORDER - 1 - index**9) for index in range(size)]
    assert public_weighted_sum(scalars, points) == group.weighted_sum(scalars, points)


@each_implementation
@pytest.mark.parametrize("factor", [group.ZERO, group.ONE, MINUS_ONE], ids=["0", "1", "L - 1"])
@pytest.mark.parametrize("encoding", INVALID)
def test_an_invalid_point_is_refused_whatever_its_factor(encoding: str, factor: bytes) -> None:
    bad = bytes.fromhex(encoding)
    for points in ([bad], [POINT, bad], [bad, POINT]):
        with pytest.raises(ProofError) as caught:
            public_weighted_sum([factor] * len(points), points)
        assert caught.value.reason is Reason.FORM


@each_implementation
@pytest.mark.parametrize("number", [group.ORDER, group.ORDER + 1, 2**253, 2**255 + 1, 2**256 - 1])
def test_a_scalar_that_is_not_below_the_order_is_refused(number: int) -> None:
    with pytest.raises(ProofError) as caught:
        public_weighted_sum([group.ONE, scalar(number)], [POINT, POINT])
    assert caught.value.reason is Reason.FORM


@each_implementation
def test_wrong_sizes_never_reach_a_library() -> None:
    for scalars, points in (
        ([group.ONE], []),
        ([group.ONE], [POINT, POINT]),
        ([b"\1" * 31], [POINT]),
        ([group.ONE, b"\1" * 33], [POINT, POINT[:-1]]),
        ([group.ONE], [POINT + b"\0"]),
    ):
        with pytest.raises(ValueError, match=r"points|bytes"):
            public_weighted_sum(scalars, points)


def library(sums: Callable[[Sequence[bytes], Sequence[bytes]], bytes]) -> SimpleNamespace:
    """A library that was built, but from something else."""

    def koikoi_weighted_sum(out: Any, scalars: bytes, points: bytes, size: int) -> int:
        try:
            out.raw = sums(group.split(scalars), group.split(points))
        except ProofError:
            return -1
        return 0 if size == len(points) // 32 else -3

    return SimpleNamespace(koikoi_weighted_sum=koikoi_weighted_sum)


def refuse(scalars: Sequence[bytes], points: Sequence[bytes]) -> bytes:
    raise ProofError(Reason.FORM, "everything is refused")


def load(monkeypatch: pytest.MonkeyPatch, built: SimpleNamespace) -> Any:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: ModuleSpec(name, None, origin="/built.so"))
    monkeypatch.setattr(ctypes, "CDLL", lambda path: built)
    return group.load_native()


def test_a_library_that_computes_right_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    native = load(monkeypatch, library(group.portable_weighted_sum))
    monkeypatch.setattr(group, "native_weighted_sum", native)
    assert public_weighted_sum([scalar(3), MINUS_ONE], [POINT, POINT]) == group.add(POINT, POINT)
    with pytest.raises(ProofError) as caught:
        public_weighted_sum([scalar(3)], [bytes.fromhex(INVALID[0])])
    assert caught.value.reason is Reason.FORM


@pytest.mark.parametrize("wrong", [lambda scalars, points: group.IDENTITY, refuse, lambda scalars, points: points[0]])
def test_a_library_that_computes_wrong_is_not_used(
    monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Sequence[bytes], Sequence[bytes]], bytes]
) -> None:
    assert load(monkeypatch, library(wrong)) is None


def test_without_a_library_there_is_none() -> None:
    assert group.load_native("koikoi_sdk.poker.was_never_built") is None
    assert group.load_native("koikoi_sdk.poker.errors") is None, "no library"
    assert group.load_native("nacl._sodium") is None, "a library, but another"
    assert group.load_native("sys") is None, "part of Python itself"
