"""Who comes in: tokens are looked up, addresses that guess are locked out, and callers that hurry are slowed down."""

import hmac
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar

from msgspec import Struct

from batonpass.clock import Clock
from batonpass.errors import LockedOutError, NotFoundError, RoleRefusedError, TooManyRequestsError, UnknownTokenError
from batonpass.ledger.access_tokens import IssuedToken, secret_digest, split_token
from batonpass.model.base.ids import AgentId, PrincipalId, TokenId
from batonpass.model.base.kinds import AccessRole
from batonpass.records.access_token import TokenRecord, get_token
from batonpass.server.entrance import OneTimeEntrance
from batonpass.store.port import LedgerStore

Name = TypeVar("Name")

_SCHEME: Final = "bearer"
_LONGEST: Final = 200
_MOST_REMEMBERED: Final = 10_000
_NOBODY: Final = "0" * 64


class AccessLimits(Struct, frozen=True, kw_only=True):
    """How much one caller may ask of a server."""

    body_bytes: int = 8 * 1024 * 1024
    requests_per_second: float = 500.0
    burst: int = 1000
    wrong_tokens: int = 10  # from one address, until it is locked out
    locked_out_for: float = 60.0  # seconds
    signs_within: float = 30.0  # seconds that a client has to sign what it is asked to
    streams: int = 64  # open streams of events, of all callers together
    public_per_minute: float = 60.0  # requests from one address, of callers without a token, to public agents
    public_tasks: int = 16  # of all such callers together, open at the same time
    public_budget: str = "at most 100 calls"  # for each of their tasks


class AccessCaller(Struct, frozen=True, kw_only=True):
    """The sender of a request: the token says who they are and which role they have."""

    token: TokenRecord

    @property
    def role(self) -> AccessRole:
        """Return the role of the token."""
        return self.token.role

    @property
    def principal(self) -> PrincipalId:
        """Return in whose name they act."""
        return self.token.principal

    @property
    def is_agent(self) -> bool:
        """Return whether they reach only runs of their own."""
        return self.token.role is AccessRole.AGENT

    def may_work_as(self, agent: AgentId) -> bool:
        """Return whether the token is for this agent."""
        return not self.token.agents or agent in self.token.agents

    def require_role(self, roles: frozenset[AccessRole]) -> None:
        """Raise `RoleRefusedError` unless the role is one of these."""
        if self.token.role not in roles:
            raise RoleRefusedError(self.token.role, tuple(sorted(roles)))


class _Remembered(Struct):
    """The rate of one address or token: how much it may still ask, and since when that was counted."""

    left: float
    since: float
    locked_until: float = 0.0


class Doorkeeper:
    """Lets callers with a valid token in. Safe to use from many threads."""

    def __init__(
        self,
        store: LedgerStore,
        clock: Clock,
        limits: AccessLimits,
        *,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._guesses: OrderedDict[tuple[str, TokenId | None], _Remembered] = OrderedDict()
        self._paces: OrderedDict[TokenId, _Remembered] = OrderedDict()
        self._strangers: OrderedDict[str, _Remembered] = OrderedDict()

    def let_in(self, authorization: str | None, address: str) -> AccessCaller:
        """Return who sent a request.

        Raises `UnknownTokenError` for a token that is missing, wrong, expired or revoked, all in the same words;
        `LockedOutError` after too many of these from one address, and `TooManyRequestsError`.
        """
        text = _token_in(authorization)
        token, secret = split_token(text or "")
        known = self._find(token)
        # Guesses at one token lock the address out for that token alone: others who share the address go on. All names
        # of tokens that do not exist count together.
        guessed = address, None if known is None else known.id
        self._require_unlocked(guessed)
        # A token that is not there is compared too, so that the time does not tell whether it is.
        expected = _NOBODY if known is None else known.secret
        right = hmac.compare_digest(expected, secret_digest(secret))
        if known is None or not right or not known.is_valid(self._clock.now()):
            if text is not None and not right:
                self._count_guess(guessed)
            raise UnknownTokenError
        self.pace(known.id)
        return AccessCaller(token=known)

    def let_in_anybody(self, address: str) -> None:
        """Let in a caller without a token, where that is public. Raises `TooManyRequestsError`."""
        most = self._limits.public_per_minute
        with self._lock:
            now = self._elapsed()
            known = _remembered(self._strangers, address, most, now)
            known.left = min(most, known.left + (now - known.since) * most / 60)
            known.since = now
            if known.left < 1:
                raise TooManyRequestsError(int((1 - known.left) * 60 / most) + 1)
            known.left -= 1

    def exchange(self, entrance: OneTimeEntrance, code: str, address: str) -> IssuedToken:
        """Return a token for the code of a one-time link. Raises as `let_in` does."""
        guessed = address, None
        self._require_unlocked(guessed)
        try:
            return entrance.enter(code)
        except UnknownTokenError:
            self._count_guess(guessed)
            raise

    def _find(self, token: TokenId) -> TokenRecord | None:
        try:
            with self._store.view() as view:
                return get_token(view, token)
        except NotFoundError:
            return None

    def _require_unlocked(self, guessed: tuple[str, TokenId | None]) -> None:
        with self._lock:
            known = self._guesses.get(guessed)
            wait = 0.0 if known is None else known.locked_until - self._elapsed()
        if wait > 0:
            raise LockedOutError(int(wait) + 1)

    def _count_guess(self, guessed: tuple[str, TokenId | None]) -> None:
        limits = self._limits
        with self._lock:
            now = self._elapsed()
            known = _remembered(self._guesses, guessed, limits.wrong_tokens, now)
            # Somebody who mistypes now and then is forgiven: one guess for each part of the time of a lock-out.
            per_second = limits.wrong_tokens / limits.locked_out_for
            known.left = min(limits.wrong_tokens, known.left + (now - known.since) * per_second) - 1
            known.since = now
            if known.left < 1:
                known.locked_until = now + limits.locked_out_for

    def pace(self, token: TokenId) -> None:
        """Count a request with this token. Raises `TooManyRequestsError`."""
        limits = self._limits
        with self._lock:
            now = self._elapsed()
            known = _remembered(self._paces, token, limits.burst, now)
            known.left = min(limits.burst, known.left + (now - known.since) * limits.requests_per_second)
            known.since = now
            if known.left < 1:
                raise TooManyRequestsError(int((1 - known.left) / limits.requests_per_second) + 1)
            known.left -= 1


def _remembered(among: "OrderedDict[Name, _Remembered]", name: Name, most: float, now: float) -> _Remembered:
    """Return the entry under a name. The entry that was unused for longest makes room."""
    known = among.get(name)
    if known is None:
        known = among[name] = _Remembered(left=most, since=now)
        if len(among) > _MOST_REMEMBERED:
            among.popitem(last=False)
    among.move_to_end(name)
    return known


def _token_in(authorization: str | None) -> str | None:
    if authorization is None or len(authorization) > _LONGEST:
        return None
    scheme, _, text = authorization.partition(" ")
    return text.strip() if scheme.lower() == _SCHEME and text.strip() else None
