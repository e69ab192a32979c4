"""Verifies ID tokens of one OpenID provider: its key cache, and the signature check through joserfc."""
