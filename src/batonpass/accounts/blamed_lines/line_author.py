"""Who wrote one line, in one word and one name: the same for listings, editors and summaries."""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown, Maker
from batonpass.accounts.blame.blame_words import who
from batonpass.notes.foreign.hearsay import Hearsay, HearsayReach


class AuthorKind(StrEnum):
    """The kind of author that a line has, and how certain that is."""

    AGENT = "agent"  # a recorded and signed call wrote it
    HEARSAY = "hearsay"  # an unsigned source says that an agent wrote it
    PERHAPS = "perhaps"  # these may have written it, or somebody who is not recorded
    COMMITTED = "committed"  # nothing is recorded; git names the author of a commit
    UNEXPLAINED = "unexplained"  # nothing is recorded, and it is in no commit
    BROKEN = "broken"  # a receipt behind the answer is not what was signed


class LineAuthor(Struct, frozen=True, kw_only=True):
    """Who wrote a line, or may have. A claim of another tool never makes it recorded, verified or approved."""

    kind: AuthorKind
    names: tuple[str, ...] = ()  # of agents with the end of their run's id, or of git's author
    at: datetime | None = None
    makers: tuple[Maker, ...] = ()
    said: tuple[Hearsay, ...] = ()  # without makers: the claims of other tools

    @property
    def label(self) -> str:
        """Return the author in a few letters; the kind can be told without colours."""
        match self.kind:
            case AuthorKind.UNEXPLAINED:
                return "unexplained"
            case AuthorKind.COMMITTED:
                return f"{self.names[0]} (git)"
            case AuthorKind.PERHAPS:
                return f"{self.names[0]}?" if len(self.names) == 1 else f"one of {len(self.names)}?"
            case AuthorKind.HEARSAY:
                return f"~{self.names[0]}"
            case AuthorKind.BROKEN:
                return f"!{self.names[0]}"
            case AuthorKind.AGENT:
                return self.names[0]


def authors_of(blame: Blame, *, full: bool = False) -> Iterator[tuple[BlamedLine, LineAuthor]]:
    """Yield the lines of an answer with their authors; lines with one verdict share one author."""
    for group in blame.groups():
        author = author_of(blame, group[0], full=full)
        for line in group:
            yield line, author


def author_of(blame: Blame, line: BlamedLine, *, full: bool = False) -> LineAuthor:
    """Return who wrote a line; in full, with whole ids."""
    makers = tuple(blame.makers[call] for call in line.calls if call in blame.makers)
    if not makers:
        if any(not one.is_human for one in line.said):
            return _heard(line)
        if line.commit is None:
            return LineAuthor(kind=AuthorKind.UNEXPLAINED)
        name = line.commit.author.rpartition(" <")[0].strip() or line.commit.author.strip() or "somebody"
        return LineAuthor(kind=AuthorKind.COMMITTED, names=(name,), at=line.commit.at)
    names = tuple(dict.fromkeys(who(maker, transcripts=blame.is_heard, full=full) for maker in makers))
    return LineAuthor(kind=_kind(line, makers), names=names, at=makers[-1].at, makers=makers)


def _heard(line: BlamedLine) -> LineAuthor:
    """Return whom other tools name: for exactly this line, and all of them the same, else perhaps.

    Of a human they tell nothing that git's author does not: then git's stays.
    """
    names = {one.by.casefold(): one.by for one in line.said}
    is_told = len(names) == 1 and all(one.reach is HearsayReach.LINE for one in line.said)
    kind = AuthorKind.HEARSAY if is_told else AuthorKind.PERHAPS
    at = None if line.commit is None else line.commit.at
    return LineAuthor(kind=kind, names=tuple(names.values()), at=at, said=line.said)


def _kind(line: BlamedLine, makers: tuple[Maker, ...]) -> AuthorKind:
    if not all(maker.proof.holds for maker in makers):
        return AuthorKind.BROKEN
    if line.known is HowKnown.CANDIDATES or line.run is None:
        return AuthorKind.PERHAPS
    return AuthorKind.HEARSAY if any(maker.is_hearsay for maker in makers) else AuthorKind.AGENT
