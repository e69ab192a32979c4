"""The group wrapper: what libsodium and its binding get wrong is handled."""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from koikoi_sdk.poker import group
from koikoi_sdk.poker.errors import ProofError, Reason

# RFC 9496 appendix A.1 (multiples of the generator) and A.2 (invalid encodings); the last is ours.
MULTIPLES = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
    "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
]
INVALID = [
    # non-canonical
    "00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    # negative
    "0100000000000000000000000000000000000000000000000000000000000000",
    "01ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ed57ffd8c914fb201471d1c3d245ce3c746fcbe63a3679d51b6a516ebebe0e20",
    "c34c4e1826e5d403b78e246e88aa051c36ccf0aafebffe137d148a2bf9104562",
    "c940e5a4404157cfb1628b108db051a8d439e1a421394ec4ebccb9ec92a8ac78",
    "47cfc5497c53dc8e61c91d17fd626ffb1c49e2bca94eed052281b510b1117a24",
    "f1c6165d33367351b0da8f6e4511010c68174a03b6581212c71c0e1d026c3c72",
    "87260f7a2f12495118360f02c26a470f450dadf34a413d21042b43b9d93e1309",
    # x^2 is no square
    "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
    "4eac077a713c57b4f4397629a4145982c661f48044dd3f96427d40b147d9742f",
    "de6a7b00deadc788eb6b6c8d20c0ae96c2f2019078fa604fee5b87d6e989ad7b",
    "bcab477be20861e01e4a0e295284146a510150d9817763caf1a6f4b422d67042",
    "2a292df7e32cababbd9de088d1d1abec9fc0440f637ed2fba145094dc14bea08",
    "f4a9e534fc0d216c44b218fa0c42d99635a0127ee2e53c712f70609649fdff22",
    "8268436f8c4126196cf64b3c7ddbda90746a378625f9813dd9b8457077256731",
    "2810e5cbc2cc4d4eece54f61c6f69758e289aa7ab440b3cbeaa21995c2f4232b",
    # x*y is negative
    "3eb858e78f5a7254d8c9731174a94f76755fd3941c0ac93735c07ba14579630e",
    "a45fdc55c76448c049a1ab33f17023edfb2be3581e9c7aade8a6125215e04220",
    "d483fe813c6ba647ebbfd3ec41adca1c6130c2beeee9d9bf065c8d151c5f396e",
    "8a2e1d30050198c65a54483123960ccc38aef6848e1ec8f5f780e8523769ba32",
    "32888462f8b486c68ad7dd9610be5192bbeaf3b443951ac1a8118419d9fa097b",
    "227142501b9d4355ccba290404bde41575b037693cef1f438c47f8fbf35d1165",
    "5c37cc491da847cfeb9281d407efc41e15144c876e0170b499a96a22ed31e01e",
    "445425117cb8c90edcbc7c1cc0e74f747f2c1efa5630a967c64f287792a48a4b",
    # y is 0
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    # bit 255 set
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2df6",
]
POINT = group.multiply_base((77).to_bytes(32, "little"))


def scalar(number: int) -> bytes:
    return number.to_bytes(32, "little")


@pytest.mark.parametrize(("factor", "encoding"), list(enumerate(MULTIPLES)))
def test_multiples_of_the_generator_are_those_of_the_rfc(factor: int, encoding: str) -> None:
    assert group.multiply_base(scalar(factor)).hex() == encoding
    assert group.multiply(scalar(factor), group.GENERATOR).hex() == encoding
    assert group.add_all([group.GENERATOR] * factor).hex() == encoding


def test_the_hash_to_group_is_that_of_the_rfc() -> None:
    digest = bytes.fromhex(
        "5d1be09e3d0c82fc538112490e35701979d99e06ca3e2b5b54bffe8b4dc772c1"
        "4d98b696a1bbfb5ca32c436cc61c16563790306c79eaca7705668b47dffe5bb6"
    )
    assert group.hash_to_point(digest).hex() == "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46"


@pytest.mark.parametrize("encoding", INVALID)
def test_an_invalid_point_is_refused_everywhere(encoding: str) -> None:
    bad = bytes.fromhex(encoding)
    calls = [
        lambda: group.multiply(scalar(5), bad),
        lambda: group.add(bad, POINT),
        lambda: group.add(POINT, bad),
        lambda: group.subtract(POINT, bad),
        lambda: group.require_points([POINT, bad], "card"),
    ]
    for call in calls:
        with pytest.raises(ProofError) as caught:
            call()
        assert caught.value.reason is Reason.FORM


def test_the_identity_is_computed_with_but_never_accepted() -> None:
    assert group.multiply(group.ZERO, POINT) == group.IDENTITY
    assert group.multiply(scalar(5), group.IDENTITY) == group.IDENTITY
    assert group.subtract(POINT, POINT) == group.IDENTITY
    assert group.add(POINT, group.IDENTITY) == POINT
    assert group.add_all([]) == group.IDENTITY
    with pytest.raises(ProofError, match=r"card\[0\]"):
        group.require_points([group.IDENTITY], "card")


def test_only_canonical_scalars_are_accepted() -> None:
    group.require_scalars([group.ZERO, group.ONE, scalar(group.ORDER - 1)], "s")
    for bad in (scalar(group.ORDER), scalar(group.ORDER + 1), scalar(1 + 2**255), b"\0" * 31, b"\0" * 33):
        with pytest.raises(ProofError, match=r"s\[1\]") as caught:
            group.require_scalars([group.ONE, bad], "s")
        assert caught.value.reason is Reason.FORM


def test_libsodium_takes_s_and_s_plus_the_order_for_the_same_which_is_why_we_check() -> None:
    assert group.multiply(scalar(3), POINT) == group.multiply(scalar(3 + group.ORDER), POINT)


def test_scalars_are_the_integers_modulo_the_order() -> None:
    a, b = 2**250 + 12345, group.ORDER - 7
    assert group.scalar_add(scalar(a), scalar(b)) == scalar((a + b) % group.ORDER)
    assert group.scalar_subtract(scalar(a), scalar(b)) == scalar((a - b) % group.ORDER)
    assert group.scalar_multiply(scalar(a), scalar(b)) == scalar(a * b % group.ORDER)
    assert group.scalar_invert(scalar(a)) == scalar(pow(a, -1, group.ORDER))
    wide = b"\xfe" * 64
    assert group.scalar_reduce(wide) == scalar(int.from_bytes(wide, "little") % group.ORDER)
    with pytest.raises(ValueError, match="no inverse"):
        group.scalar_invert(group.ZERO)


def test_wrong_sizes_never_reach_the_library() -> None:
    for call in (
        lambda: group.multiply(b"\1" * 31, POINT),
        lambda: group.add(POINT, POINT[:-1]),
        lambda: group.scalar_add(POINT, POINT + b"\0"),
        lambda: group.hash_to_point(bytes(63)),
        lambda: group.scalar_reduce(bytes(65)),
    ):
        with pytest.raises(ValueError, match="bytes"):
            call()
    with pytest.raises(ProofError, match="multiple of 32"):
        group.split(bytes(33))
    assert group.split(b"") == ()


def test_loading_leaves_no_file_in_the_temporary_directory(tmp_path: Path) -> None:
    code = "from koikoi_sdk.poker import group; assert group.multiply_base(group.ONE) == group.GENERATOR"
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_directory_that_cannot_load_libraries_is_named_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "binding_on_noexec.py").write_text("raise OSError('failed to map segment from shared object')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="TMPDIR") as caught:
        group.load_library("binding_on_noexec")
    assert "failed to map segment" in str(caught.value)


def test_a_missing_temporary_directory_is_named_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "none"))
    with pytest.raises(ImportError, match="TMPDIR"):
        group.load_library()
    assert tempfile.tempdir == str(tmp_path / "none")


def test_pythons_own_place_serves_where_the_temporary_directory_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "python"
    place.mkdir()
    (tmp_path / "binding_on_noexec_tmp.py").write_text(
        "import ctypes, pathlib, tempfile\n"
        f"if pathlib.Path(tempfile.gettempdir()).parent != pathlib.Path({str(place)!r}):\n"
        "    raise OSError('failed to map segment from shared object')\n"
        "_sodium = ctypes.CDLL(None)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(place))
    assert isinstance(group.load_library("binding_on_noexec_tmp"), ctypes.CDLL)
    assert list(place.iterdir()) == []


def test_a_binding_without_a_library_is_refused() -> None:
    with pytest.raises(ImportError, match="rbcl"):
        group.load_library("json")
