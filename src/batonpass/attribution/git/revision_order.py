"""When each revision of a file came about, among the recorded changes: clocks are not exact, what follows from what is.

A commit is not older than its parents and than the commits that it repeats. One that holds what a call wrote came after
that change, also where the call went on for a while, with a push for instance.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.git.git_history import Checkout, History, Revision
from batonpass.attribution.git.rewrites import Rewrites
from batonpass.model.base.ids import Digest, time_of

# Git keeps whole seconds: a change within the second of a commit may be in it, and is looked at first.
_SECOND: Final = timedelta(seconds=1)
_LONGEST_CALL: Final = timedelta(hours=1)


def order_revisions(
    history: History, rewrites: Rewrites, changes: Sequence[FileChange]
) -> Iterator[tuple[Revision, datetime]]:
    """Yield the revisions with the time at which they are to be looked at, those first that others are made of."""
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
        """Yield each revision after its parents, and after those that it repeats as far as that is possible."""
        own = {name: self._own(one) for name, one in self._known.items()}

        # Two commits may say of each other that they are the same; of parents and children, nobody can be in doubt.
        def place(name: str) -> tuple[datetime, bool]:
            return max([own[name], *(own[tip] for tip in self._tips(name))]), not self._known[name].aside

        wanted = sorted(self._known, key=place)
        times: dict[str, datetime] = {}
        for name in wanted:
            waiting = [name]
            begun: set[str] = set()  # whoever claims to be its own ancestor is not waited for
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
        """Return whether a commit cannot repeat another: of two of one second, the one that lies aside was first."""
        one, other = self._known[name], self._known[tip]
        return name == tip or (one.aside and not other.aside and one.at == other.at)

    def _own(self, revision: Revision) -> datetime:
        if len(revision.parents) > 1:
            return revision.at  # what it holds was written before
        if self._tips(revision.commit):
            return self._written_at(revision) or revision.at  # likewise, unless a call had just written it
        if (known := self._known_time(revision)) is not None:
            return known
        # Nobody had written it when it was committed: the call that did is the one that committed it.
        after = revision.at + _SECOND
        later = (change for change in self._written.get(revision.digest, ()) if _began_at(change) <= after)
        own = min((change.at for change in later), default=after)
        return min(own, self._ends.get(revision.commit, own))

    def _known_time(self, revision: Revision) -> datetime | None:
        """Return when a commit came among changes that lead to it, or from it, within its second; None if none does."""
        if (written := self._written_at(revision)) is not None:
            return written
        after = revision.at + _SECOND
        begun = [change.at for change in self._begun.get(revision.digest, ()) if revision.at <= change.at <= after]
        if not begun:
            return None
        # It came before the first change that begins with it, and after all others: at the beginning of its second,
        # it would seem older than a change that it holds together with what somebody else wrote.
        return max([revision.at, *(change.at for change in self._changes if change.at < min(begun))])

    def _written_at(self, revision: Revision) -> datetime | None:
        """Return when a commit came after changes that lead to it, until the end of its second; None if none does."""
        after = revision.at + _SECOND
        written = [change.at for change in self._written.get(revision.digest, ()) if change.at <= after]
        return max(revision.at, *written) if written else None

    def _find_ends(self, checkouts: Sequence[Checkout]) -> dict[str, datetime]:
        """Return of commits until when they were made: the head came to them before it came to those after them."""
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
    """Return when a call began, which its id says; of an id that says nothing, when it ended."""
    try:
        began = time_of(change.call)
    except (KeyError, OverflowError):
        return change.at
    return began if timedelta() <= change.at - began <= _LONGEST_CALL else change.at
