"""Who may write: those who send the token of LABELKIN_TOKEN."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from labelkin.serve.problems import ProblemError
from labelkin.serve.settings import TOKEN_VARIABLE


@dataclass(frozen=True, slots=True)
class Access:
    """Decides whether a request may write."""

    token: str
    read_only: bool = False

    @property
    def allows_writing(self) -> bool:
        """Whether anyone may write."""
        return bool(self.token) and not self.read_only

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise a problem unless a request with these headers may write."""
        if self.read_only:
            raise ProblemError(403, "the service is read-only")
        self.check_token(headers, "writing")

    def check_token(self, headers: Mapping[str, str], what: str) -> None:
        """Raise a problem unless the token was sent; `what` needs it."""
        if not self.token:
            raise ProblemError(
                403, f"{what} is off; start the service with {TOKEN_VARIABLE} in its environment"
            )
        if not self.has_token(headers):
            raise ProblemError(
                401,
                f"{what} needs the token of the service: Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": 'Bearer realm="labelkin"'},
            )

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Whether the token was sent: as a bearer token, or as the password of basic access.

        Clients that know nothing but a URL send `http://any:TOKEN@host/` as the latter.
        """
        scheme, _, value = headers.get("authorization", "").partition(" ")
        # The bytes as they were sent: the framework reads headers as Latin-1.
        given = value.strip().encode("latin-1", "replace")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except binascii.Error:
                given = b""
        elif scheme.lower() != "bearer":
            given = b""
        is_same = hmac.compare_digest(given, self.token.encode("utf-8"))
        return bool(self.token) and is_same
