"""The provider's RSA keys: kept in a directory, rotated, and signed with - rightly, or wrongly on purpose."""

import json
import os
import secrets
import warnings
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import OctKey, RSAKey

from tools.oidc_provider.faults import Faults, overridden

_PUBLISHED = 3  # the newest signs; the two before may still have tokens on their way


class ProviderKeys:
    """Holds the keys of a directory, `NNNN-<kid>.json`, oldest first; makes the first one when there is none."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._keys = [_read(path) for path in sorted(directory.glob("*.json"))]
        self._wrong_keys: dict[str, RSAKey] = {}
        if not self._keys:
            self.rotate()

    @property
    def current_kid(self) -> str:
        """Return the id of the key in use."""
        return str(self._keys[-1].kid)

    def rotate(self, *, forget_old: bool = False) -> str:
        """Make a new key and use it from now on; returns its id. The old keys stay published unless forgotten."""
        kid = secrets.token_hex(8)
        jwk = {**_generate(2048).as_dict(private=True), "kid": kid}
        path = self._directory / f"{len(list(self._directory.glob('*.json'))):04d}-{kid}.json"
        draft = path.with_suffix(".draft")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(jwk, file)
        draft.rename(path)
        self._keys = ([] if forget_old else self._keys) + [RSAKey.import_key(jwk)]
        return kid

    def key_set(self, faults: Faults) -> dict[str, Any]:
        """Return the published key set."""
        if faults.key_set == "empty":
            return {"keys": []}
        keys = [(str(key.kid), key) for key in self._keys[-_PUBLISHED:]]
        if faults.key_set == "weak":
            keys = [("weak", self._wrong_key("weak", 1024))]
        return {"keys": [_public(key, kid) for kid, key in keys]}

    def sign(self, claims: Mapping[str, Any], faults: Faults) -> str:
        """Return an ID token; `faults` may make it a bad one."""
        kid, key, algorithm = self.current_kid, self._keys[-1], "RS256"
        signer: RSAKey | OctKey = key
        match faults.signing:
            case "unknown_key":
                kid, signer = "unknown", self._wrong_key("foreign", 2048)
            case "foreign_key":
                signer = self._wrong_key("foreign", 2048)
            case "weak_key":
                kid, signer = "weak", self._wrong_key("weak", 1024)
            case "hmac":
                algorithm, signer = "HS256", OctKey.import_key(urlsafe_b64encode(key.as_pem(private=False)))
            case "RS512" | "PS256":
                algorithm = faults.signing
        header = overridden({"alg": algorithm, "kid": kid, "typ": "JWT"}, faults.header)
        body = overridden(claims, faults.claims)
        if faults.signing == "none":
            return f"{_part({**header, 'alg': 'none'})}.{_part(body)}."
        token = _sign(header, body, signer, algorithm)
        if faults.signing == "damaged":
            return token[:-20] + ("A" if token[-20] != "A" else "B") + token[-19:]
        return token

    def _wrong_key(self, name: str, bits: int) -> RSAKey:
        if name not in self._wrong_keys:
            self._wrong_keys[name] = _generate(bits)
        return self._wrong_keys[name]


def _sign(header: Mapping[str, Any], body: Mapping[str, Any], signer: RSAKey | OctKey, algorithm: str) -> str:
    """Sign header and body as they are, whatever they say; joserfc would refuse a header it finds odd."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)  # weak keys are meant
        signed = f"{_part(header)}.{_part(body)}"
        model = jws.JWSRegistry.algorithms[algorithm]
        signature = model.sign(signed.encode(), signer)
    return f"{signed}.{_encode(signature)}"


def _generate(bits: int) -> RSAKey:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        return RSAKey.import_key(rsa.generate_private_key(public_exponent=65_537, key_size=bits))


def _read(path: Path) -> RSAKey:
    return RSAKey.import_key(json.loads(path.read_text(encoding="utf-8")))


def _public(key: RSAKey, kid: str) -> dict[str, Any]:
    return {**key.as_dict(private=False), "kid": kid, "use": "sig", "alg": "RS256"}


def _part(members: Mapping[str, Any]) -> str:
    return _encode(json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode())


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
