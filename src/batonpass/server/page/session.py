"""Sessions of the page: a cookie stands for a token, for as long as both are valid.

Every session belongs to a token in the ledger, which says whose it is and what it may do. So revoking the token ends
the session at once, and who came in is on record. Only a digest of the cookie is kept, in memory: a server that
starts again asks people to come in again.
"""

import hmac
import secrets
import threading
from collections import OrderedDict
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.errors import RoleRefusedError, SessionEndedError, WrongFormError
from batonpass.model.base.ids import TokenId
from batonpass.model.base.kinds import AccessRole
from batonpass.records.access_token import TokenRecord, get_token
from batonpass.server.access import AccessCaller
from batonpass.server.control_plane import ControlPlane
from batonpass.server.endpoint import PEOPLE

LASTS: Final = timedelta(hours=12)
_MOST: Final = 10_000
_SECRET_BYTES: Final = 32


class PageSession(Struct, frozen=True, kw_only=True):
    """An open session: which token it stands for, and until when."""

    token: TokenId
    until: datetime
    form_secret: str  # what every form of this session has to bring along
    is_own: bool  # the token was made for this session, and ends with it


class PageVisitor(Struct, frozen=True, kw_only=True):
    """A visitor of the page: the caller that the doors know, and the session."""

    caller: AccessCaller
    session: PageSession

    @property
    def name(self) -> str:
        """Return their name without the kind of principal."""
        return self.caller.principal.partition(":")[2]

    def may(self, roles: frozenset[AccessRole]) -> bool:
        """Return whether their role is one of these."""
        return self.caller.role in roles

    def require_form(self, given: str) -> None:
        """Raise `WrongFormError` unless a form was made for this session."""
        if not hmac.compare_digest(self.session.form_secret.encode(), given.encode()):
            raise WrongFormError


class PageSessions:
    """Opens and finds sessions. Safe to use from many threads."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._lock = threading.Lock()
        self._open: OrderedDict[str, PageSession] = OrderedDict()

    def open_for(self, principal: str, role: AccessRole, *, by: str, lasts: timedelta = LASTS) -> str:
        """Return the cookie of a new session for somebody whom another door has recognised, such as a login service.

        The ledger gets a token for it, which ends when they leave.
        """
        issued = self._plane.relay.admin.add_token(principal, role, by=by, lasts=lasts)
        return self.open_with(issued.id, is_own=True)

    def open_with(self, token: TokenId, *, is_own: bool) -> str:
        """Return the cookie of a new session that stands for a token. Raises `RoleRefusedError` for an agent's."""
        record = self._record(token)
        if record.role not in PEOPLE:
            raise RoleRefusedError(record.role, tuple(sorted(PEOPLE)))
        now = self._plane.clock.now()
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        opened = PageSession(
            token=token,
            until=min(now + LASTS, record.until),
            form_secret=secrets.token_urlsafe(_SECRET_BYTES),
            is_own=is_own,
        )
        with self._lock:
            self._open[_digest(secret)] = opened
            for known in [known for known, session in self._open.items() if session.until <= now]:
                del self._open[known]
            while len(self._open) > _MOST:
                self._open.popitem(last=False)
        return secret

    def find(self, secret: str | None) -> PageVisitor:
        """Return whose session a cookie is.

        Raises `SessionEndedError` if there is none: it ended, or its token was revoked; `TooManyRequestsError`.
        """
        with self._lock:
            session = None if secret is None else self._open.get(_digest(secret))
        if session is None or self._plane.clock.now() >= session.until:
            raise SessionEndedError
        record = self._record(session.token)
        if not record.is_valid(self._plane.clock.now()):
            raise SessionEndedError
        self._plane.doorkeeper.pace(record.id)
        return PageVisitor(caller=AccessCaller(token=record), session=session)

    def close(self, secret: str | None) -> None:
        """End a session, and the token that was made for it."""
        with self._lock:
            session = None if secret is None else self._open.pop(_digest(secret), None)
        if session is None or not session.is_own:
            return
        record = self._record(session.token)
        if record.is_valid(self._plane.clock.now()):
            self._plane.relay.admin.revoke_token(record.id, by=record.principal, reason="left the page")

    def _record(self, token: TokenId) -> TokenRecord:
        with self._plane.relay.store.view() as view:
            return get_token(view, token)


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
