"""Tracks which calls run at the same time: a change in a shared window may belong to any of them.

Two looks show the changes while a call ran, but not who made them. If another call ran at any moment in between, both
see the change, and each record names the other as a candidate. Only an exact claim decides: a call that was told to
write the file, and whose bytes before and after are known.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.attribution.changes.change import digest_of
from batonpass.attribution.worktree.tree_difference import Difference, Look
from batonpass.attribution.worktree.write_intent import UNTOLD, Intent
from batonpass.model.base.ids import Digest

LONGEST: Final = timedelta(hours=12)


class OverlapClaim(Struct, frozen=True, kw_only=True):
    """A call turned exactly these bytes of a file into those; None for no file."""

    call: str
    path: str  # as in a `Difference`
    before: bytes | None
    after: bytes | None


class Ended(Struct, frozen=True, kw_only=True):
    """A finished call: the look before it, the calls that ran meanwhile, and their claims."""

    look: Look | None = None
    intent: Intent = UNTOLD  # the writes that it was told to make
    others: Mapping[str, Intent | None] = field(default_factory=dict)  # their intents; None: unknown
    claims: tuple[OverlapClaim, ...] = ()

    @property
    def suspects(self) -> dict[str, Intent | None]:
        """Return the others that may have made a change that no claim explains.

        A call that only writes the files it names, and has claimed one, is not among them.
        """
        claimed = {claim.call for claim in self.claims}
        return {
            call: intent
            for call, intent in self.others.items()
            if intent is None or not (intent.only and call in claimed)
        }


class _Call(Struct):
    began: datetime
    intent: Intent | None
    others: dict[str, Intent | None]
    look: Look | None = None
    claims: list[OverlapClaim] = field(default_factory=list)


class Underway:
    """The calls of one work tree that have begun and not ended. Thread-safe.

    A call begins before the look that precedes it, and ends after the look that follows it. Otherwise a call that
    begins or ends between a look and its registration could change files without being named. Call `forget` for a
    call whose end nobody reports, because it was denied or its session was killed. Otherwise it counts as ended after
    the longest time that a call may take.
    """

    def __init__(self, *, longest: timedelta = LONGEST) -> None:
        self._longest = longest
        self._calls: dict[str, _Call] = {}
        self._lock = Lock()

    def begin(self, call: str, *, at: datetime, intent: Intent | None = UNTOLD) -> None:
        """Register a call with its intent; the look at the files comes next."""
        with self._lock:
            for stale in [name for name, each in self._calls.items() if at - each.began > self._longest]:
                self._drop(stale)
            for other in self._calls.values():
                other.others[call] = intent
            others = {name: each.intent for name, each in self._calls.items() if name != call}
            self._calls[call] = _Call(at, intent, others)

    def keep(self, call: str, look: Look) -> None:
        """Keep the look before a call until it ends."""
        with self._lock:
            if call in self._calls:
                self._calls[call].look = look

    def claim(self, call: str, path: str, *, before: bytes | None, after: bytes | None) -> None:
        """Register the exact text that a call gave a file named in its arguments; all running calls learn of it."""
        claim = OverlapClaim(call=call, path=path, before=before, after=after)
        with self._lock:
            for name, each in self._calls.items():
                if name != call:
                    each.claims.append(claim)

    def end(self, call: str) -> Ended:
        """Unregister a call, after the look that follows it, and return its registered claims."""
        with self._lock:
            found = self._calls.pop(call, None)
        if found is None:
            return Ended()
        return Ended(look=found.look, intent=found.intent or UNTOLD, others=found.others, claims=tuple(found.claims))

    def is_quiet(self) -> bool:
        """Return whether no call is running."""
        with self._lock:
            return not self._calls

    def forget(self, call: str) -> None:
        """Unregister a call that never ran: it cannot have changed anything."""
        with self._lock:
            self._drop(call)

    def _drop(self, call: str) -> None:
        self._calls.pop(call, None)
        for other in self._calls.values():
            other.others.pop(call, None)


def unclaimed(differences: Iterable[Difference], claims: Iterable[OverlapClaim]) -> Iterator[Difference]:
    """Yield the part of differences that no claim explains: nothing if claims explain a file completely.

    A claim that starts from the bytes before, or leads to the bytes after, is taken off at that side.
    """
    by_path: dict[str, list[OverlapClaim]] = {}
    for claim in claims:
        by_path.setdefault(claim.path, []).append(claim)
    for each in differences:
        left = _rest(each, by_path.get(each.path, []))
        if left is each or left.before_digest != left.after_digest:
            yield left


def _rest(whole: Difference, claims: list[OverlapClaim]) -> Difference:
    left = whole
    open_claims = list(claims)
    for claim in claims:
        if _digest(claim.before) == left.before_digest:
            left = replace(left, before=claim.after, before_digest=_digest(claim.after))
            open_claims.remove(claim)
    for claim in reversed(open_claims):
        if left.before_digest != left.after_digest and _digest(claim.after) == left.after_digest:
            left = replace(left, after=claim.before, after_digest=_digest(claim.before))
    return left


def _digest(data: bytes | None) -> Digest | None:
    return None if data is None else digest_of(data)
