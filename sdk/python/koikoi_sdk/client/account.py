"""The device's session with auth: sign in, keep the access token fresh, sign out."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from koikoi.auth.v1 import auth_service_pb2 as auth

from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.errors import LocalProtocolError, ServerError, StorageError
from koikoi_sdk.client.home import Home

SERVICE = "koikoi.auth.v1.AuthService"
REFRESH_LEAD_S = 60.0
"""Seconds before its end at which an access token is renewed."""


class Account:
    """One device's session, kept in its home; the access token is renewed in time."""

    def __init__(self, client: ConnectClient, home: Home, *, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._home = home
        self._clock = clock
        self.key = home.device_key()
        self._session = self._load()
        client.access_token = lambda: str(self._session.get("access_token", ""))

    @property
    def home(self) -> Home:
        """Give where this device keeps its session and matches."""
        return self._home

    @property
    def account_id(self) -> str:
        """Give the account's id.

        Raises:
            LocalProtocolError: Nobody is signed in.
        """
        if not self._session:
            raise LocalProtocolError("nobody is signed in on this device: run `koikoi login`")
        return str(self._session["account_id"])

    @property
    def display_name(self) -> str:
        """Give the display name, or an empty string before signing in."""
        return str(self._session.get("display_name", ""))

    @property
    def issuer(self) -> str:
        """Give the name of the auth service that issued the session."""
        return str(self._session.get("issuer", ""))

    async def begin_sign_in(self) -> auth.BeginSignInResponse:
        """Ask for a challenge and remember it, so that the sign-in may be completed by a later process."""
        request = auth.BeginSignInRequest(device_key=self.key.public)
        begun = await self._client.call(f"{SERVICE}/BeginSignIn", request, auth.BeginSignInResponse)
        members = {"challenge": begun.challenge.hex(), "nonce": begun.nonce, "issuer": begun.issuer}
        self._home.save("challenge", members)
        return begun

    async def sign_in(self, id_token: str, *, display_name: str = "", device_name: str = "") -> auth.SignInResponse:
        """Complete the sign-in that was begun, with an ID token that carries its nonce."""
        begun = self._home.load("challenge")
        if begun is None:
            raise LocalProtocolError("no sign-in was begun on this device: ask for a nonce first")
        try:
            challenge, issuer = bytes.fromhex(begun["challenge"]), str(begun["issuer"])
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError("the sign-in that was begun is damaged on disk; begin again") from error
        digest = hashlib.sha256(id_token.encode()).digest()
        signature = self.key.sign("auth", b"sign-in", issuer.encode(), b"", self.key.public, challenge, digest)
        request = auth.SignInRequest(
            device_key=self.key.public,
            challenge=challenge,
            id_token=id_token,
            device_signature=signature,
            device_name=device_name,
            display_name=display_name,
            request_id=secrets.token_hex(16),
        )
        answer = await self._client.call(f"{SERVICE}/SignIn", request, auth.SignInResponse)
        self._keep(answer.session, issuer, answer.profile.account_id, answer.profile.display_name)
        self._home.forget("challenge")
        return answer

    async def sign_in_with(
        self, fetch_id_token: Callable[[str], Awaitable[str]], *, display_name: str = "", device_name: str = ""
    ) -> auth.SignInResponse:
        """Sign in with an ID token that `fetch_id_token` gets for a nonce."""
        begun = await self.begin_sign_in()
        id_token = await fetch_id_token(begun.nonce)
        return await self.sign_in(id_token, display_name=display_name, device_name=device_name)

    async def sign_in_by_redirect(
        self, show: Callable[[str], None], *, timeout_s: float = 300.0, display_name: str = "", device_name: str = ""
    ) -> auth.CompleteRedirectSignInResponse:
        """Sign in in the user's browser: `show` is given the address to open there.

        Raises:
            ServerError: The service or the identity provider refused.
            TimeoutError: Nobody came back from the browser in time.
        """
        from koikoi_sdk.client.redirect import make_verifier, open_loopback

        verifier, code_challenge = make_verifier()
        async with open_loopback() as loopback:
            request = auth.BeginRedirectSignInRequest(
                device_key=self.key.public,
                redirect_uri=loopback.redirect_uri,
                client_state=loopback.state,
                code_challenge=code_challenge,
            )
            begun = await self._client.call(f"{SERVICE}/BeginRedirectSignIn", request, auth.BeginRedirectSignInResponse)
            if not begun.authorize_url.startswith(("https://", "http://")):
                raise ServerError("the service gave an address that is none of the web", code="internal")
            loopback.issuer = begun.issuer
            show(begun.authorize_url)
            code = await loopback.code(timeout_s)
        digest = hashlib.sha256(code.encode()).digest()
        fields = (begun.issuer.encode(), b"", self.key.public, begun.challenge, digest)
        completion = auth.CompleteRedirectSignInRequest(
            code=code,
            code_verifier=verifier,
            device_signature=self.key.sign("auth", b"sign-in", *fields),
            device_name=device_name,
            display_name=display_name,
            request_id=secrets.token_hex(16),
        )
        method = f"{SERVICE}/CompleteRedirectSignIn"
        answer = await self._client.call(method, completion, auth.CompleteRedirectSignInResponse)
        self._keep(answer.session, begun.issuer, answer.profile.account_id, answer.profile.display_name)
        return answer

    async def devices(self) -> list[auth.Device]:
        """List the account's devices, this one first."""
        await self.ensure_fresh()
        request = auth.ListDevicesRequest()
        return list((await self._client.call(f"{SERVICE}/ListDevices", request, auth.ListDevicesResponse)).devices)

    async def rename_device(self, device_id: str, name: str) -> auth.Device:
        """Change the name a device of the account is listed under."""
        await self.ensure_fresh()
        request = auth.RenameDeviceRequest(device_id=device_id, device_name=name, request_id=secrets.token_hex(16))
        return (await self._client.call(f"{SERVICE}/RenameDevice", request, auth.RenameDeviceResponse)).device

    async def revoke_device(self, device: auth.Device) -> bool:
        """End the session of a device of the account, this one's too; says whether it was signed in."""
        await self.ensure_fresh()
        request = auth.RevokeDeviceRequest(device_id=device.device_id, request_id=secrets.token_hex(16))
        answer = await self._client.call(f"{SERVICE}/RevokeDevice", request, auth.RevokeDeviceResponse)
        if device.is_current:
            self._forget()
        return answer.has_ended_session

    async def ensure_fresh(self) -> None:
        """Renew the access token when it ends within a minute; call it before a call that needs one.

        Raises:
            LocalProtocolError: Nobody is signed in.
            ServerError: The session was revoked; sign in again.
        """
        async with self._home.lock("session"):
            self._session = self._load()  # another process may have renewed it
            account_id = self.account_id
            if float(self._session["access_expires"]) - self._clock() > REFRESH_LEAD_S:
                return
            token, issuer = str(self._session["refresh_token"]), self.issuer
            digest = hashlib.sha256(token.encode()).digest()
            signature = self.key.sign("auth", b"refresh", issuer.encode(), account_id.encode(), self.key.public, digest)
            request = auth.RefreshSessionRequest(refresh_token=token, device_signature=signature)
            try:
                answer = await self._client.call(f"{SERVICE}/RefreshSession", request, auth.RefreshSessionResponse)
            except ServerError as error:
                if error.code == "unauthenticated":
                    self._forget()
                raise
            self._keep(answer.session, issuer, account_id, self.display_name)

    async def sign_out(self, *, all_devices: bool = False) -> None:
        """End the session at the service and forget it here; one that was ended there already is only forgotten.

        Raises:
            ServerError: With `all_devices`, from a session that was ended already: the others go on; sign in again.
        """
        try:
            await self.ensure_fresh()
            request = auth.SignOutRequest(all_devices=all_devices, request_id=secrets.token_hex(16))
            await self._client.call(f"{SERVICE}/SignOut", request, auth.SignOutResponse)
        except ServerError as error:
            if error.code != "unauthenticated" or all_devices:
                raise
        self._forget()

    def _load(self) -> dict[str, Any]:
        session = self._home.load("session") or {}
        if session and not _is_session(session):
            raise StorageError("the session on this device is damaged; sign in again after removing session.json")
        return session

    def _keep(self, session: auth.Session, issuer: str, account_id: str, display_name: str) -> None:
        self._session = {
            "account_id": account_id,
            "display_name": display_name,
            "issuer": issuer,
            "access_token": session.access_token,
            "access_expires": session.access_expire_time.seconds,
            "refresh_token": session.refresh_token,
        }
        self._home.save("session", self._session)

    def _forget(self) -> None:
        self._session = {}
        self._home.forget("session")


def _is_session(members: Mapping[str, Any]) -> bool:
    texts = ("account_id", "display_name", "issuer", "access_token", "refresh_token")
    expires = members.get("access_expires")
    return isinstance(expires, int | float) and all(isinstance(members.get(name), str) for name in texts)
