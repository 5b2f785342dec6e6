"""A whole pull request: whose work each hunk is, lines that nothing explains, and findings of the runs behind it."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby

from msgspec import Struct

from batonpass.accounts.blame.blame_values import Maker
from batonpass.accounts.blame.hunk_blame import BlamedHunk
from batonpass.accounts.blamed_lines.line_author import AuthorKind, authors_of
from batonpass.accounts.blamed_lines.span_summary import SpanSummary, sum_up
from batonpass.accounts.taint.taint_values import Way
from batonpass.accounts.taint.taint_way import find_way
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import RunId
from batonpass.review.review import Review, review_roots
from batonpass.store.port import LedgerView

_OPEN = frozenset({AuthorKind.COMMITTED, AuthorKind.UNEXPLAINED})


class DiffWork(Struct, frozen=True, kw_only=True):
    """The part of a diff that one run wrote: its lines, and one of its calls with everything that is known."""

    maker: Maker
    places: tuple[str, ...]  # path:first-last
    lines: int
    ways: tuple[Way, ...] | None  # of content from outside to that call; None if they cannot be followed here


class ReviewedDiff(Struct, frozen=True, kw_only=True):
    """A diff by the runs that wrote it, with the findings of their trees."""

    summary: SpanSummary
    works: tuple[DiffWork, ...]  # by agents, most lines first
    perhaps: tuple[str, ...]  # places that an agent may have written
    unexplained: tuple[str, ...]  # places that nothing recorded wrote
    review: Review  # of the trees behind it that this ledger has


def review_diff(view: LedgerView, hunks: Iterable[BlamedHunk], now: datetime) -> ReviewedDiff:
    """Review the hunks of a diff."""
    known = list(hunks)
    makers: dict[RunId, Maker] = {}
    places: dict[RunId, list[str]] = {}
    lines: dict[RunId, int] = {}
    perhaps: list[str] = []
    unexplained: list[str] = []
    for place, kind, maker, count in _parts(known):
        if kind in _OPEN:
            unexplained.append(place)
        elif maker is None or kind is AuthorKind.PERHAPS:
            perhaps.append(place)
        else:
            run = maker.run.id
            makers.setdefault(run, maker)
            places.setdefault(run, []).append(place)
            lines[run] = lines.get(run, 0) + count
    works = [
        DiffWork(maker=maker, places=tuple(places[run]), lines=lines[run], ways=_ways(view, maker))
        for run, maker in makers.items()
    ]
    return ReviewedDiff(
        summary=sum_up(known),
        works=tuple(sorted(works, key=lambda work: (-work.lines, work.maker.run.id))),
        perhaps=tuple(dict.fromkeys(perhaps)),
        unexplained=tuple(dict.fromkeys(unexplained)),
        review=_review(view, makers, now),
    )


def _parts(hunks: Iterable[BlamedHunk]) -> Iterator[tuple[str, AuthorKind, Maker | None, int]]:
    """Yield each stretch of added lines with one author: its place, the kind of author, the author, its length."""
    for hunk in hunks:
        if hunk.blame is None:
            continue
        # Neighbours with the same author have the same object, and their numbers follow each other.
        told = sorted(authors_of(hunk.blame), key=lambda one: one[0].number)
        numbered = enumerate(told)
        for _, stretch in groupby(numbered, key=lambda one: (id(one[1][1]), one[1][0].number - one[0])):
            pairs = [pair for _, pair in stretch]
            first, last, author = pairs[0][0].number, pairs[-1][0].number, pairs[0][1]
            where = f"{hunk.place.path}:{first}" + (f"-{last}" if last > first else "")
            yield where, author.kind, author.makers[0] if author.makers else None, len(pairs)


def _ways(view: LedgerView, maker: Maker) -> tuple[Way, ...] | None:
    if maker.noted is not None:
        return None  # what a note tells is not in this ledger
    return find_way(view, maker.call or maker.run.id)


def _review(view: LedgerView, makers: Mapping[RunId, Maker], now: datetime) -> Review:
    roots = []
    for maker in makers.values():
        try:
            roots.append(view.get_run(maker.run.root).id)
        except NotFoundError:
            continue  # somebody else's ledger has it
    return review_roots(view, dict.fromkeys(roots), now)
