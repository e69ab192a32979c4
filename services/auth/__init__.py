"""Sign-in with an OpenID provider, accounts, device keys and sessions; issues the access tokens."""
