"""Orders the revisions of a file among the recorded changes. Clocks are inexact, dependencies are not.

A commit is not older than its parents and the commits that it repeats. A commit that contains a call's text came after
that change, even if the call went on for a while, for example with a push.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.git.git_history import Checkout, History, Revision
from batonpass.attribution.git.rewrites import Rewrites
from batonpass.model.base.ids import Digest, time_of

# Git stores whole seconds: a change in the second of a commit may be part of it, so it is ordered first.
_SECOND: Final = timedelta(seconds=1)
_LONGEST_CALL: Final = timedelta(hours=1)


def order_revisions(
    history: History, rewrites: Rewrites, changes: Sequence[FileChange]
) -> Iterator[tuple[Revision, datetime]]:
    """Yield the revisions with the time at which to process them; each after those that it is based on."""
    return _Order(history, rewrites, changes).all()


class _Order:
    def __init__(self, history: History, rewrites: Rewrites, changes: Sequence[FileChange]) -> None:
        self._known = {one.commit: one for one in history.revisions}
        self._rewrites = rewrites
        self._said: dict[str, list[str]] = {}
        self._written: dict[Digest, list[FileChange]] = {}
        self._begun: dict[Digest, list[FileChange]] = {}
        self._changes = changes
        for change in changes:
            if change.before is not None:
                self._begun.setdefault(change.before, []).append(change)
            if change.after is not None:
                self._written.setdefault(change.after, []).append(change)

        self._ends = self._find_ends(history.checkouts)

    def all(self) -> Iterator[tuple[Revision, datetime]]:
        """Yield each revision after its parents, and if possible after those that it repeats."""
        own = {name: self._own(one) for name, one in self._known.items()}

        # Two commits may each claim to repeat the other; parents are certain.
        def place(name: str) -> tuple[datetime, bool]:
            return max([own[name], *(own[tip] for tip in self._tips(name))]), not self._known[name].aside

        wanted = sorted(self._known, key=place)
        times: dict[str, datetime] = {}
        for name in wanted:
            waiting = [name]
            begun: set[str] = set()  # breaks cycles in a damaged history
            while waiting:
                one = waiting[-1]
                parents = [parent for parent in self._known[one].parents if parent in self._known]
                missing = [parent for parent in parents if parent not in times and parent not in begun]
                if missing:
                    waiting += missing
                    begun.add(one)
                    continue
                waiting.pop()
                if one not in times:
                    earlier = (*parents, *self._tips(one))
                    times[one] = max([own[one], *(times[other] for other in earlier if other in times)])
                    yield self._known[one], times[one]

    def _tips(self, name: str) -> list[str]:
        if name not in self._said:
            tips = dict.fromkeys(one.tip for one in self._rewrites.said(self._known[name]))
            self._said[name] = [tip for tip in tips if tip in self._known and not self._is_older(name, tip)]
        return self._said[name]

    def _is_older(self, name: str, tip: str) -> bool:
        """Return whether a commit cannot repeat another: of two in the same second, the one aside was first."""
        one, other = self._known[name], self._known[tip]
        return name == tip or (one.aside and not other.aside and one.at == other.at)

    def _own(self, revision: Revision) -> datetime:
        if len(revision.parents) > 1:
            return revision.at  # a merge contains only earlier text
        if self._tips(revision.commit):
            return self._written_at(revision) or revision.at  # likewise, unless a call had just written the text
        if (known := self._known_time(revision)) is not None:
            return known
        # No change led to it by then: the call that wrote the text also committed it, and ended later.
        after = revision.at + _SECOND
        later = (change for change in self._written.get(revision.digest, ()) if _began_at(change) <= after)
        own = min((change.at for change in later), default=after)
        return min(own, self._ends.get(revision.commit, own))

    def _known_time(self, revision: Revision) -> datetime | None:
        """Return the time of a commit relative to changes that lead to it or start from it within its second."""
        if (written := self._written_at(revision)) is not None:
            return written
        after = revision.at + _SECOND
        begun = [change.at for change in self._begun.get(revision.digest, ()) if revision.at <= change.at <= after]
        if not begun:
            return None
        # It precedes the first change that starts from it and follows all others. Placed at the start of its second,
        # it could seem older than a change that it contains next to somebody else's text.
        return max([revision.at, *(change.at for change in self._changes if change.at < min(begun))])

    def _written_at(self, revision: Revision) -> datetime | None:
        """Return the time of a commit after changes that lead to it, up to the end of its second; None if none does."""
        after = revision.at + _SECOND
        written = [change.at for change in self._written.get(revision.digest, ()) if change.at <= after]
        return max(revision.at, *written) if written else None

    def _find_ends(self, checkouts: Sequence[Checkout]) -> dict[str, datetime]:
        """Return the latest possible time of commits: the head reached them before it reached the later ones."""
        ends: dict[str, datetime] = {}
        end: datetime | None = None
        for checkout in reversed(checkouts):
            revision = self._known.get(checkout.commit)
            if end is not None and checkout.at <= end:
                ends[checkout.commit] = end
            if revision is not None and (known := self._known_time(revision)) is not None:
                end = known
        return ends


def _began_at(change: FileChange) -> datetime:
    """Return when a call began, from its id; if the id does not tell, when it ended."""
    try:
        began = time_of(change.call)
    except (KeyError, OverflowError):
        return change.at
    return began if timedelta() <= change.at - began <= _LONGEST_CALL else change.at
