"""The group ristretto255 (RFC 9496) on libsodium, with every pitfall of the binding closed.

Points and scalars are `bytes` of length 32. libsodium comes with rbcl, whose own Python functions
ignore return codes (an invalid point would silently become the identity); this module calls the
same library directly, checks every length before and every return code after a call, and handles
the identity and the scalar zero, which libsodium refuses, itself (docs/protocol.md section 14).

All arithmetic on scalars, secret or not, is libsodium's constant-time code; Python integers are
only used to test that a *received* scalar is below the order. `public_weighted_sum` alone takes
variable time: it is what checks proofs, and uses the project's own C (ristretto.c) where that was
built (docs/adr/0017).
"""

import ctypes
import importlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from koikoi_sdk.poker.errors import ProofError, Reason, require

SIZE = 32
"""Bytes of an encoded point and of an encoded scalar."""
ORDER = 2**252 + 27742317777372353535851937790883648493
IDENTITY = bytes(SIZE)
ZERO = bytes(SIZE)
ONE = (1).to_bytes(SIZE, "little")

_Out = ctypes.c_char * SIZE
WeightedSum = Callable[[Sequence[bytes], Sequence[bytes]], bytes]


def load_library(binding: str = "rbcl.rbcl") -> ctypes.CDLL:
    """Load rbcl's libsodium and leave no file behind.

    rbcl writes 2.8 MB into the temporary directory at every import and forgets them. It is given a
    directory of its own here, which is removed again; the mapped library stays usable. Where the
    temporary directory permits no libraries (mounted noexec), Python's own place serves: it does.

    Raises:
        ImportError: Neither serves. Set TMPDIR to a directory that does.
    """
    faults = []
    for place in (None, sys.prefix):
        try:
            library = _load_from(place, binding)
        except OSError as error:
            faults.append(error)
            continue
        if not isinstance(library, ctypes.CDLL):
            raise ImportError(f"{binding} holds no loaded libsodium; rbcl 1.1.2 is required.")  # noqa: TRY004 - for the caller a failed import
        return library
    raise ImportError(
        f"libsodium cannot be loaded from the temporary directory: {faults[0]}. Set the environment "
        "variable TMPDIR to a writable directory that is not mounted noexec and has 3 MB free."
    ) from faults[0]


def _load_from(place: str | None, binding: str) -> object:
    """Import the binding with a temporary directory in `place`, None for the usual one."""
    usual = tempfile.tempdir
    try:
        with tempfile.TemporaryDirectory(prefix="koikoi-", dir=place, ignore_cleanup_errors=True) as private:
            tempfile.tempdir = private
            return getattr(importlib.import_module(binding), "_sodium", None)
    finally:
        tempfile.tempdir = usual


_library = load_library()


def _bind(name: str, *arguments: type, library: ctypes.CDLL = _library) -> Callable[..., int]:
    function = getattr(library, name)
    function.argtypes = arguments
    function.restype = ctypes.c_int
    return cast("Callable[..., int]", function)


_is_valid = _bind("crypto_core_ristretto255_is_valid_point", ctypes.c_char_p)
_from_hash = _bind("crypto_core_ristretto255_from_hash", _Out, ctypes.c_char_p)
_add = _bind("crypto_core_ristretto255_add", _Out, ctypes.c_char_p, ctypes.c_char_p)
_subtract = _bind("crypto_core_ristretto255_sub", _Out, ctypes.c_char_p, ctypes.c_char_p)
_multiply = _bind("crypto_scalarmult_ristretto255", _Out, ctypes.c_char_p, ctypes.c_char_p)
_multiply_base = _bind("crypto_scalarmult_ristretto255_base", _Out, ctypes.c_char_p)
_scalar_reduce = _bind("crypto_core_ristretto255_scalar_reduce", _Out, ctypes.c_char_p)
_scalar_invert = _bind("crypto_core_ristretto255_scalar_invert", _Out, ctypes.c_char_p)
_scalar_add = _bind("crypto_core_ristretto255_scalar_add", _Out, ctypes.c_char_p, ctypes.c_char_p)
_scalar_subtract = _bind("crypto_core_ristretto255_scalar_sub", _Out, ctypes.c_char_p, ctypes.c_char_p)
_scalar_multiply = _bind("crypto_core_ristretto255_scalar_mul", _Out, ctypes.c_char_p, ctypes.c_char_p)


def _sized(*values: bytes) -> None:
    for value in values:
        if len(value) != SIZE:
            raise ValueError(f"a point or scalar has {SIZE} bytes, not {len(value)}")


def _unambiguous(*points: bytes) -> None:
    """Refuse bit 255, which libsodium 1.0.18 ignores: each point would have two encodings."""
    _sized(*points)
    for point in points:
        require(point[-1] < 0x80, Reason.FORM, "not a point of ristretto255")


def multiply(scalar: bytes, point: bytes) -> bytes:
    """Give scalar * point.

    Raises:
        ProofError: The point is no valid encoding.
    """
    _sized(scalar)
    _unambiguous(point)
    if scalar == ZERO or point == IDENTITY:
        return subtract(point, point)  # checks the point, too
    out = _Out()
    if _multiply(out, scalar, point):
        raise ProofError(Reason.FORM, "not a point of ristretto255")
    return out.raw


def multiply_base(scalar: bytes) -> bytes:
    """Give scalar * G."""
    _sized(scalar)
    out = _Out()
    _multiply_base(out, scalar)  # fails only for zero, and leaves the identity then
    return out.raw


def add(left: bytes, right: bytes) -> bytes:
    """Give left + right.

    Raises:
        ProofError: One of them is no valid encoding.
    """
    _unambiguous(left, right)
    out = _Out()
    if _add(out, left, right):
        raise ProofError(Reason.FORM, "not a point of ristretto255")
    return out.raw


def subtract(left: bytes, right: bytes) -> bytes:
    """Give left - right.

    Raises:
        ProofError: One of them is no valid encoding.
    """
    _unambiguous(left, right)
    out = _Out()
    if _subtract(out, left, right):
        raise ProofError(Reason.FORM, "not a point of ristretto255")
    return out.raw


def add_all(points: Iterable[bytes]) -> bytes:
    """Give the sum of the points; the identity if there are none."""
    remaining = iter(points)
    total = next(remaining, IDENTITY)
    for point in remaining:
        total = add(total, point)
    return total


def weighted_sum(scalars: Iterable[bytes], points: Iterable[bytes]) -> bytes:
    """Give the sum of scalar_i * point_i."""
    return add_all(map(multiply, scalars, points))


def hash_to_point(digest: bytes) -> bytes:
    """Give the one-way map of RFC 9496 section 4.3.4 for 64 uniform bytes."""
    if len(digest) != 2 * SIZE:
        raise ValueError(f"a point is made from {2 * SIZE} bytes, not {len(digest)}")
    out = _Out()
    _from_hash(out, digest)
    return out.raw


def scalar_reduce(digest: bytes) -> bytes:
    """Read 64 bytes as a little-endian integer modulo the order."""
    if len(digest) != 2 * SIZE:
        raise ValueError(f"a scalar is reduced from {2 * SIZE} bytes, not {len(digest)}")
    out = _Out()
    _scalar_reduce(out, digest)
    return out.raw


def scalar_add(left: bytes, right: bytes) -> bytes:
    """Give left + right modulo the order."""
    _sized(left, right)
    out = _Out()
    _scalar_add(out, left, right)
    return out.raw


def scalar_subtract(left: bytes, right: bytes) -> bytes:
    """Give left - right modulo the order."""
    _sized(left, right)
    out = _Out()
    _scalar_subtract(out, left, right)
    return out.raw


def scalar_multiply(left: bytes, right: bytes) -> bytes:
    """Give left * right modulo the order."""
    _sized(left, right)
    out = _Out()
    _scalar_multiply(out, left, right)
    return out.raw


def scalar_invert(scalar: bytes) -> bytes:
    """Give the inverse modulo the order of a scalar that is not zero."""
    _sized(scalar)
    out = _Out()
    if _scalar_invert(out, scalar):
        raise ValueError("zero has no inverse")
    return out.raw


def split(data: bytes) -> tuple[bytes, ...]:
    """Cut a list of points or scalars into its members; nothing is checked but the length."""
    if len(data) % SIZE:
        raise ProofError(Reason.FORM, f"length is not a multiple of {SIZE}")
    return tuple(data[at : at + SIZE] for at in range(0, len(data), SIZE))


def require_points(points: Sequence[bytes], name: str) -> None:
    """Refuse received bytes that are not canonical points of the group, or the identity.

    Raises:
        ProofError: FORM; the text has the name and the index.
    """
    for index, point in enumerate(points):
        valid = len(point) == SIZE and point != IDENTITY and point[-1] < 0x80 and _is_valid(point) == 1
        require(valid, Reason.FORM, f"{name}[{index}] is not a canonical point other than the identity")


def require_scalars(scalars: Sequence[bytes], name: str) -> None:
    """Refuse received bytes that are not scalars below the order.

    libsodium takes s, s + L and s + 2^255 for the same number, so this must come first.

    Raises:
        ProofError: FORM; the text has the name and the index.
    """
    for index, scalar in enumerate(scalars):
        valid = len(scalar) == SIZE and int.from_bytes(scalar, "little") < ORDER
        require(valid, Reason.FORM, f"{name}[{index}] is not a canonical scalar")


GENERATOR = multiply_base(ONE)


def portable_weighted_sum(scalars: Sequence[bytes], points: Sequence[bytes]) -> bytes:
    """Do the work of `public_weighted_sum` with libsodium, one multiplication after the other."""
    require_scalars(scalars, "scalar")
    pairs = zip(scalars, points, strict=True)
    return add_all(multiply_base(scalar) if point == GENERATOR else multiply(scalar, point) for scalar, point in pairs)


def load_native(name: str = "koikoi_sdk.poker._ristretto") -> WeightedSum | None:
    """Load the library built from ristretto.c, which does the work of `public_weighted_sum` about four times as fast.

    Gives None where set-up found no compiler for it, or where it does not give one known sum: a
    wrongly compiled library would accept false proofs.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    try:
        library = ctypes.CDLL(spec.origin)
        arguments = (_Out, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
        function = _bind("koikoi_weighted_sum", *arguments, library=library)
    except (OSError, AttributeError):
        return None

    def native(scalars: Sequence[bytes], points: Sequence[bytes]) -> bytes:
        out = _Out()
        if function(out, b"".join(scalars), b"".join(points), len(points)):
            raise ProofError(Reason.FORM, "not points of ristretto255 and canonical scalars")
        return out.raw

    return native if _gives_the_known_sum(native) else None


def _gives_the_known_sum(weighted_sum: WeightedSum) -> bool:
    some = hash_to_point(bytes(range(2 * SIZE)))
    scalars = (scalar_subtract(ZERO, ONE), scalar_reduce(b"\xa5" * 2 * SIZE), scalar_reduce(bytes(range(2 * SIZE))))
    points = (some, subtract(GENERATOR, some), GENERATOR)
    try:
        return weighted_sum(scalars, points) == portable_weighted_sum(scalars, points)
    except ProofError:
        return False


native_weighted_sum = load_native()
ACCELERATED = native_weighted_sum is not None
"""Whether proofs are checked with the project's own C library rather than with libsodium alone."""


def public_weighted_sum(scalars: Sequence[bytes], points: Sequence[bytes]) -> bytes:
    """Give the sum of scalar_i * point_i in variable time: for public values only, never for a secret.

    Raises:
        ProofError: FORM; a point is no valid encoding, or a scalar is not below the order.
        ValueError: The lists have different lengths, or a member has not 32 bytes.
    """
    if len(scalars) != len(points):
        raise ValueError(f"{len(scalars)} scalars for {len(points)} points")
    _sized(*scalars, *points)
    return (native_weighted_sum or portable_weighted_sum)(scalars, points)
