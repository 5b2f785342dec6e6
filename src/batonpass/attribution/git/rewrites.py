"""Which earlier commits a commit repeats: what was rebased, picked, amended, squashed or taken back.

Git forgets it, and leaves traces: a rewritten commit keeps its author and the time when it was authored; messages name
the commit that was picked or reverted, and all that were squashed. Without a trace, a commit that does to the file
exactly what a commit of another branch did, or a row of them, may be that one again.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from msgspec import Struct

from batonpass.attribution.git.git_history import Revision

_MOST_ASIDE: Final = 64  # of the latest commits of other branches are compared
_LONGEST: Final = 16  # commits in a row that were made one


class Repeated(Struct, frozen=True):
    """What lies between two commits was done again; `is_said` if git's traces say so."""

    base: str
    tip: str
    is_said: bool


def _is_same(one: Revision, other: Revision) -> bool:
    """Return whether a commit is another with the same author and time, rewritten.

    A program commits twice in a second. But what is rebased or picked keeps its subject; and what is amended keeps its
    parents, and is left behind.
    """
    is_amended = one.aside and one.parents == other.parents
    return one.commit != other.commit and (one.subject == other.subject or is_amended)


class Rewrites:
    """The revisions of one file, and which of them may be others again."""

    def __init__(self, revisions: Sequence[Revision]) -> None:
        ordered = sorted(revisions, key=lambda one: one.at)
        self._known = {one.commit: one for one in revisions}
        self._named = [one.commit for one in ordered]
        self._order = {name: number for number, name in enumerate(self._named)}
        self._aside = [one for one in reversed(ordered) if one.aside]
        self._reached: dict[str, int] = {}
        self._authored: defaultdict[object, list[Revision]] = defaultdict(list)
        self._children: defaultdict[str, list[Revision]] = defaultdict(list)
        for one in ordered:
            if one.author:
                self._authored[one.author, one.authored_at].append(one)
            if one.parents:
                self._children[one.parents[0]].append(one)

    def base_of(self, one: str, other: str) -> str | None:
        """Return the latest commit that leads to both; None if there is none."""
        both = self._behind(one) & self._behind(other)
        return self._named[both.bit_length() - 1] if both else None

    def leads_to(self, one: str, other: str) -> bool:
        """Return whether a commit is another, or came before it on its way."""
        return bool(self._behind(other) >> self._order[one] & 1) if one in self._order else False

    def of(self, revision: Revision) -> Iterator[Repeated]:
        """Yield what a commit may repeat, that which git says first."""
        seen: set[tuple[str, str]] = set()
        for repeated in chain(self.said(revision), self._alike(revision)):
            key = repeated.base, repeated.tip
            if key not in seen and revision.commit not in key:
                seen.add(key)
                yield repeated

    def said(self, revision: Revision) -> Iterator[Repeated]:
        """Yield what git says that a commit repeats."""
        named = [self._known[name] for name in revision.made_from if name in self._known]
        for one in named:
            yield from (Repeated(base, one.commit, is_said=True) for base in self._bases(one))
        for name in revision.reverts:
            if (undone := self._known.get(name)) is not None:
                yield from (Repeated(name, base, is_said=True) for base in undone.parents[:1])
        if not revision.author:
            return
        same = self._authored[revision.author, revision.authored_at]
        # A history that a program made may have one time for all of it: then the latest have to stand for the rest.
        for one in islice(reversed(same), _MOST_ASIDE):
            if one.at <= revision.at and _is_same(one, revision):
                # What was fixed up has the author of the first, and does what all of them did.
                for tip in islice(self._after(one), _LONGEST):
                    yield from (Repeated(base, tip.commit, is_said=True) for base in one.parents[:1])

    def _alike(self, revision: Revision) -> Iterator[Repeated]:
        earlier = (one for one in self._aside if one.at <= revision.at)
        others = (one for one in earlier if not self.leads_to(one.commit, revision.commit))
        for one in islice(others, _MOST_ASIDE):
            yield from (Repeated(base, one.commit, is_said=False) for base in self._bases(one))

    def _bases(self, tip: Revision) -> Iterator[str]:
        """Yield what a commit, or a row of them that ends with it, began with."""
        one: Revision | None = tip
        for _ in range(_LONGEST):
            if one is None or not one.parents:
                return
            yield one.parents[0]
            one = self._known.get(one.parents[0])
            if one is not None and not one.aside:
                return

    def _after(self, first: Revision) -> Iterator[Revision]:
        """Yield a commit and those that went on from it."""
        waiting = [first]
        while waiting:
            one = waiting.pop(0)
            yield one
            waiting += (child for child in self._children[one.commit] if child.aside)

    def _behind(self, commit: str) -> int:
        """Return a commit and all before it, a bit for each: sets of them are compared for every merge."""
        waiting = [commit]
        begun: set[str] = set()  # whoever claims to be its own ancestor is not waited for
        while waiting:
            one = waiting[-1]
            parents = (
                [parent for parent in self._known[one].parents if parent in self._known] if one in self._known else []
            )
            missing = [parent for parent in parents if parent not in self._reached and parent not in begun]
            if missing:
                waiting += missing
                begun.add(one)
                continue
            waiting.pop()
            reached = 1 << self._order[one] if one in self._order else 0
            for parent in parents:
                reached |= self._reached.get(parent, 0)
            self._reached[one] = reached
        return self._reached[commit]
