"""Finds the earlier commits that a commit repeats: rebased, picked, amended, squashed or reverted.

Git does not record this, but leaves traces. A rewritten commit keeps its author and author time; messages name the
commit that was picked or reverted, and all that were squashed. Without a trace, a commit that changes the file exactly
as a commit (or a row of commits) of another branch did may repeat it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from msgspec import Struct

from batonpass.attribution.git.git_history import Revision

_MOST_ASIDE: Final = 64  # latest commits of other branches to compare
_LONGEST: Final = 16  # commits in a row that were combined into one


class Repeated(Struct, frozen=True):
    """The changes between two commits were made again; `is_said` if git's traces say so."""

    base: str
    tip: str
    is_said: bool


def _is_same(one: Revision, other: Revision) -> bool:
    """Return whether a commit is a rewrite of another with the same author and author time.

    A program may commit twice in a second. But a rebased or picked commit keeps its subject, and an amended one keeps
    its parents and leaves the original aside.
    """
    is_amended = one.aside and one.parents == other.parents
    return one.commit != other.commit and (one.subject == other.subject or is_amended)


class Rewrites:
    """The revisions of one file, and which of them may repeat others."""

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
        """Return the latest common ancestor of two commits; None if there is none."""
        both = self._behind(one) & self._behind(other)
        return self._named[both.bit_length() - 1] if both else None

    def leads_to(self, one: str, other: str) -> bool:
        """Return whether a commit is another or its ancestor."""
        return bool(self._behind(other) >> self._order[one] & 1) if one in self._order else False

    def of(self, revision: Revision) -> Iterator[Repeated]:
        """Yield the commits that a commit may repeat, those that git names first."""
        seen: set[tuple[str, str]] = set()
        for repeated in chain(self.said(revision), self._alike(revision)):
            key = repeated.base, repeated.tip
            if key not in seen and revision.commit not in key:
                seen.add(key)
                yield repeated

    def said(self, revision: Revision) -> Iterator[Repeated]:
        """Yield the commits that a commit repeats according to git's traces."""
        named = [self._known[name] for name in revision.made_from if name in self._known]
        for one in named:
            yield from (Repeated(base, one.commit, is_said=True) for base in self._bases(one))
        for name in revision.reverts:
            if (undone := self._known.get(name)) is not None:
                yield from (Repeated(name, base, is_said=True) for base in undone.parents[:1])
        if not revision.author:
            return
        same = self._authored[revision.author, revision.authored_at]
        # A generated history may have one time for all commits; then only the latest are compared.
        for one in islice(reversed(same), _MOST_ASIDE):
            if one.at <= revision.at and _is_same(one, revision):
                # A fixup has the author of the first commit and the changes of all.
                for tip in islice(self._after(one), _LONGEST):
                    yield from (Repeated(base, tip.commit, is_said=True) for base in one.parents[:1])

    def _alike(self, revision: Revision) -> Iterator[Repeated]:
        earlier = (one for one in self._aside if one.at <= revision.at)
        others = (one for one in earlier if not self.leads_to(one.commit, revision.commit))
        for one in islice(others, _MOST_ASIDE):
            yield from (Repeated(base, one.commit, is_said=False) for base in self._bases(one))

    def _bases(self, tip: Revision) -> Iterator[str]:
        """Yield the commits that a commit, or a row of commits that ends with it, was based on."""
        one: Revision | None = tip
        for _ in range(_LONGEST):
            if one is None or not one.parents:
                return
            yield one.parents[0]
            one = self._known.get(one.parents[0])
            if one is not None and not one.aside:
                return

    def _after(self, first: Revision) -> Iterator[Revision]:
        """Yield a commit and its descendants aside."""
        waiting = [first]
        while waiting:
            one = waiting.pop(0)
            yield one
            waiting += (child for child in self._children[one.commit] if child.aside)

    def _behind(self, commit: str) -> int:
        """Return a commit and its ancestors as bits: such sets are compared for every merge."""
        waiting = [commit]
        begun: set[str] = set()  # breaks cycles in a damaged history
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
