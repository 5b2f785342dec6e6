"""Who wrote the lines that a commit or a pull request adds, in sum: agents, for whom, and unexplained lines."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from batonpass.accounts.blame.blame_values import Maker
from batonpass.accounts.blame.hunk_blame import BlamedHunk
from batonpass.accounts.blamed_lines.line_author import AuthorKind, LineAuthor, authors_of
from batonpass.model.base.visible import visible
from batonpass.records.handoff import Standing
from batonpass.records.hold import Leave

MARK = "<!-- batonpass git summary -->"

_ORDER = (
    *(AuthorKind.BROKEN, AuthorKind.AGENT, AuthorKind.HEARSAY, AuthorKind.PERHAPS),
    *(AuthorKind.COMMITTED, AuthorKind.UNEXPLAINED),
)
_REPLACED = str.maketrans({"`": "'", "|": "/"})
_SIGNED = frozenset({AuthorKind.AGENT})
_OPEN = frozenset({AuthorKind.COMMITTED, AuthorKind.UNEXPLAINED})


class AuthorSum(Struct, kw_only=True):
    """The lines of one author: an agent and the human it worked for, or somebody whom only git names."""

    kind: AuthorKind
    name: str
    principal: str | None = None
    lines: int = 0
    verified: int = 0
    refuted: int = 0
    approved: int = 0
    unapproved: int = 0  # a rule asks for an approval, and there is none
    runs: set[str] = field(default_factory=set)

    def count(self, author: LineAuthor) -> None:
        """Count one line. Only signed lines count as verified or approved."""
        self.lines += 1
        if author.kind in _SIGNED:
            standings = {maker.standing for maker in author.makers}
            self.verified += standings == {Standing.VERIFIED}
            self.refuted += Standing.REFUTED in standings
            leaves = {_leave(maker) for maker in author.makers}
            self.approved += leaves == {Leave.GIVEN}
            self.unapproved += not leaves.isdisjoint({Leave.MISSING, Leave.WAITING, Leave.REFUSED})
            self.runs |= {maker.run.id for maker in author.makers}

    @property
    def label(self) -> str:
        """Return the name with the sign of its kind."""
        match self.kind:
            case AuthorKind.HEARSAY:
                return f"~{self.name}"
            case AuthorKind.BROKEN:
                return f"!{self.name}"
            case AuthorKind.PERHAPS:
                return f"{self.name}?"
            case AuthorKind.COMMITTED:
                return f"{self.name} (git)"
            case _:
                return self.name


class SpanSummary(Struct, frozen=True, kw_only=True):
    """All lines that a diff adds, by author."""

    files: int
    added: int
    removed: int
    not_text: int  # files without lines
    authors: tuple[AuthorSum, ...]  # what is not to be trusted first, then agents by lines, then what is unexplained

    def lines(self, *kinds: AuthorKind) -> int:
        """Return how many lines authors of these kinds have."""
        return sum(author.lines for author in self.authors if author.kind in kinds)

    @property
    def unexplained(self) -> int:
        """Return how many lines no record explains, by any committer."""
        return self.lines(*_OPEN)

    @property
    def holds(self) -> bool:
        """Return whether the receipts behind it carry valid signatures."""
        return not self.lines(AuthorKind.BROKEN)

    def total(self, name: str) -> int:
        """Return the sum of a column."""
        return sum(getattr(author, name) for author in self.authors)


def sum_up(hunks: Iterable[BlamedHunk]) -> SpanSummary:
    """Return the authors of all lines that these hunks add."""
    sums: dict[tuple[AuthorKind, str, str | None], AuthorSum] = {}
    files: set[str] = set()
    not_text: set[str] = set()
    added = removed = 0
    for hunk in hunks:
        files.add(hunk.place.path)
        removed += hunk.place.removed
        if hunk.blame is None or not hunk.blame.lines:
            if hunk.place.is_made or hunk.place.added:
                not_text.add(hunk.place.path)
            continue
        added += len(hunk.blame.lines)
        for _, author in authors_of(hunk.blame):
            name, principal = _named(author)
            key = author.kind, name, principal
            sums.setdefault(key, AuthorSum(kind=author.kind, name=name, principal=principal)).count(author)
    order = sorted(sums.values(), key=lambda one: (_ORDER.index(one.kind), -one.lines, one.name))
    return SpanSummary(files=len(files), added=added, removed=removed, not_text=len(not_text), authors=tuple(order))


def summary_facts(summary: SpanSummary) -> dict[str, Any]:
    """Return a summary for programs."""
    return {
        "files": summary.files,
        "added": summary.added,
        "removed": summary.removed,
        "not_text": summary.not_text,
        "by_agents": summary.lines(AuthorKind.AGENT),
        "hearsay": summary.lines(AuthorKind.HEARSAY),
        "perhaps": summary.lines(AuthorKind.PERHAPS),
        "broken": summary.lines(AuthorKind.BROKEN),
        "unexplained": summary.unexplained,
        "verified": summary.total("verified"),
        "refuted": summary.total("refuted"),
        "approved": summary.total("approved"),
        "unapproved": summary.total("unapproved"),
        "authors": [
            {
                "kind": one.kind.value,
                "name": one.name,
                "for": one.principal,
                "lines": one.lines,
                "verified": one.verified,
                "refuted": one.refuted,
                "approved": one.approved,
                "unapproved": one.unapproved,
                "runs": sorted(one.runs),
            }
            for one in summary.authors
        ],
    }


def tell_sum(summary: SpanSummary) -> str:
    """Return the whole summary in one sentence."""
    parts = [
        f"{count:,} {words}"
        for count, words in (
            (summary.lines(AuthorKind.AGENT), "by agents"),
            (summary.lines(AuthorKind.HEARSAY), "by agents as an unsigned source says"),
            (summary.lines(AuthorKind.PERHAPS), "perhaps by agents"),
            (summary.unexplained, "unexplained"),
            (summary.lines(AuthorKind.BROKEN), "NOT TO BE TRUSTED"),
        )
        if count
    ]
    lines = f"{summary.added:,} line{'s' * (summary.added != 1)} added"
    return f"{lines}: {', '.join(parts)}" if parts else f"{lines}"


def tell_doubts(summary: SpanSummary) -> Iterator[str]:
    """Yield the doubts that a reviewer should look at, one sentence each."""
    for count, words in (
        (summary.lines(AuthorKind.BROKEN), "rest on a receipt that is not what was signed"),
        (summary.total("refuted"), "are of work that was refuted"),
        (summary.total("unapproved"), "needed an approval by a rule and have none"),
    ):
        if count:
            yield f"{count:,} line{'s' * (count != 1)} {words}"
    if summary.unexplained:
        yield "unexplained lines: nothing recorded wrote them; git names who committed them"


def summary_markdown(summary: SpanSummary, title: str) -> str:
    """Return a summary as a comment for a pull request. Words of others are code, in which nothing is live."""
    rows = [MARK, "### Who wrote these lines", "", f"{tell_sum(summary)}. {_code(title)}", ""]
    if summary.authors:
        rows += ["| author | for | lines | verified | approved |", "|---|---|---:|---:|---:|"]
        rows += [f"| {' | '.join(_cells(author))} |" for author in summary.authors]
        rows.append("")
    rows += [f"- {doubt}" for doubt in tell_doubts(summary)]
    return "\n".join(rows).rstrip() + "\n"


def cells_of(author: AuthorSum) -> tuple[str, str, str, str, str]:
    """Return an author as cells: name, for whom, lines, verified, approved. A count that cannot exist is left empty."""
    human = "" if author.principal is None else author.principal.removeprefix("user:")
    proven = [f"{count:,}" if author.kind in _SIGNED else "" for count in (author.verified, author.approved)]
    return author.label, human, f"{author.lines:,}", proven[0], proven[1]


def _cells(author: AuthorSum) -> Iterator[str]:
    name, human, *counts = cells_of(author)
    yield _code(name)
    yield _code(human) if human else ""
    yield from counts


def _code(words: str) -> str:
    """Return words as code: names there call nobody, and numbers lead to no issue."""
    # What would end the code or the cell is replaced: how renderers escape it there differs.
    shown = visible(" ".join(words.split())).translate(_REPLACED)
    return f"`{shown or ' '}`"


def _named(author: LineAuthor) -> tuple[str, str | None]:
    if author.said:
        humans = {one.human for one in author.said}
        return " or ".join(author.names), next(iter(humans)) if len(humans) == 1 else None
    if not author.makers:
        return (author.names[0] if author.names else "unexplained"), None
    agents = dict.fromkeys(maker.run.agent for maker in author.makers)
    return " or ".join(agents), _principal(author.makers)


def _leave(maker: Maker) -> Leave | None:
    """Return the approval of a call; from a note, only one that an approver signed with a pinned key counts."""
    if maker.noted is not None and maker.noted.proven_by:
        return Leave.GIVEN
    return None if maker.leave is None else maker.leave.leave


def _principal(makers: tuple[Maker, ...]) -> str | None:
    found = {maker.principal for maker in makers}
    return str(next(iter(found))) if len(found) == 1 else None
