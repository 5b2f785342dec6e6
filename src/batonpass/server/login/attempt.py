"""Logins under way: each belongs to one browser, and its answer from the provider counts once."""

import base64
import hmac
import secrets
import threading
from collections import OrderedDict
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.clock import Clock
from batonpass.errors import LoginRefusedError

OPEN_FOR: Final = timedelta(minutes=10)
_MOST: Final = 1_000
_BYTES: Final = 32


class LoginAttempt(Struct, frozen=True, kw_only=True):
    """One login under way."""

    state: str
    nonce: str
    verifier: str
    browser: str  # what the cookie of this browser has
    to: str  # where it leads afterwards
    until: datetime

    @property
    def challenge(self) -> str:
        """Return the challenge for the provider, made from the verifier."""
        return base64.urlsafe_b64encode(sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


class LoginAttempts:
    """Keeps logins under way in memory. Safe to use from many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: OrderedDict[str, LoginAttempt] = OrderedDict()

    def begin(self, to: str) -> LoginAttempt:
        """Return a new login. If there are too many, the oldest makes room."""
        state, nonce, verifier, browser = (secrets.token_urlsafe(_BYTES) for _ in range(4))
        until = self._clock.now() + OPEN_FOR
        begun = LoginAttempt(state=state, nonce=nonce, verifier=verifier, browser=browser, to=to, until=until)
        with self._lock:
            self._open[state] = begun
            while len(self._open) > _MOST:
                self._open.popitem(last=False)
        return begun

    def finish(self, state: str, browser: str | None) -> LoginAttempt:
        """Return the login that a browser comes back from, and forget it. Raises `LoginRefusedError`."""
        with self._lock:
            found = self._open.pop(state, None)
        if found is None or self._clock.now() >= found.until:
            raise LoginRefusedError("this login was not begun here, took too long, or was finished before")
        if browser is None or not hmac.compare_digest(found.browser.encode(), browser.encode()):
            # Somebody else's login, sent to this browser as a link, would let it work in that person's name.
            raise LoginRefusedError("this login was begun in another browser")
        return found
