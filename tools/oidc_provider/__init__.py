"""A small local OpenID provider for tests and `make run`: it lets anybody sign in as anybody. For development only.

It keeps the rules that clients must keep too: authorization code with PKCE (S256), exact redirect addresses or loopback
ones (RFC 8252), codes good for one use, RS256 ID tokens, rotating keys. `faults` makes it misbehave on purpose.

    GET  /.well-known/openid-configuration   where everything is
    GET  /authorize                          login page; with prompt=none and login_hint it answers at once
    POST /token                              code + verifier for an ID token
    GET  /jwks                               public keys
    POST /admin/faults, /admin/rotate        misbehave, rotate keys (JSON)
"""

from tools.oidc_provider.faults import Faults
from tools.oidc_provider.server import Provider, open_provider
from tools.oidc_provider.settings import ProviderSettings

__all__ = ["Faults", "Provider", "ProviderSettings", "open_provider"]
