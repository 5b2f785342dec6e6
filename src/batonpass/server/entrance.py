"""The way in for the person who started the server: a code that is shown once, and exchanged once for a token."""

import hmac
import secrets
import threading
from datetime import datetime, timedelta
from typing import Final

from batonpass.clock import Clock
from batonpass.errors import UnknownTokenError
from batonpass.ledger.access_tokens import IssuedToken
from batonpass.model.base.kinds import AccessRole
from batonpass.relay import Relay

OPEN_FOR: Final = timedelta(minutes=10)
TOKEN_LASTS: Final = timedelta(hours=12)


class OneTimeEntrance:
    """Exchanges one code for one token, once. It is closed until somebody opens it."""

    def __init__(self, relay: Relay, clock: Clock) -> None:
        self._relay = relay
        self._clock = clock
        self._lock = threading.Lock()
        self._code: str | None = None
        self._principal = ""
        self._until: datetime | None = None

    def open(self, principal: str) -> str:
        """Return a new code, which replaces the one before. Its holder comes in as this principal."""
        with self._lock:
            self._code, self._principal = secrets.token_urlsafe(24), principal
            self._until = self._clock.now() + OPEN_FOR
            return self._code

    def enter(self, code: str) -> IssuedToken:
        """Return a token for the right code, and close. Raises `UnknownTokenError`."""
        with self._lock:
            right = self._code is not None and hmac.compare_digest(self._code.encode(), code.encode())
            if not right or self._until is None or self._clock.now() >= self._until:
                raise UnknownTokenError
            self._code = None
            principal = self._principal
        return self._relay.admin.add_token(principal, AccessRole.ADMIN, by=principal, lasts=TOKEN_LASTS)
