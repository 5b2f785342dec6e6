"""A whole file with an author beside each line, as `git blame` shows one."""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blamed_lines.line_author import AuthorKind, LineAuthor, authors_of

_TAB = 4


class ListedLine(Struct, frozen=True, kw_only=True):
    """One line of a listing. Its printer must make its texts safe."""

    label: str
    when: str
    number: int
    text: str
    kind: AuthorKind
    is_repeated: bool  # the line above has the same author, by the same call


def list_lines(blame: Blame, now: datetime, *, full: bool = False) -> Iterator[ListedLine]:
    """Yield each line of an answer with its author; in full, with whole ids."""
    before: LineAuthor | None = None
    for line, author in authors_of(blame, full=full):
        is_repeated = author is before
        yield ListedLine(
            label=author.label,
            when="" if author.at is None else _day(author.at, now),
            number=line.number,
            text=line.text.removesuffix("\r").expandtabs(_TAB),
            kind=author.kind,
            is_repeated=is_repeated,
        )
        before = author


def find_legend(blame: Blame) -> Iterator[tuple[str, str]]:
    """Yield the signs in a listing of this answer, each with its meaning; "" for a remark without a sign."""
    kinds = {author.kind for _, author in authors_of(blame)}
    if AuthorKind.BROKEN in kinds:
        yield "!", "not to be trusted: a receipt behind it is not what was signed; ask for the line alone"
    if AuthorKind.PERHAPS in kinds:
        yield "?", "perhaps: it is unknown who wrote this line; ask for it alone to see who may have"
    if AuthorKind.HEARSAY in kinds:
        yield "~", "hearsay: an unsigned source says so"
    if not blame.recorded:
        yield "", "no change of this file is recorded"
    elif AuthorKind.COMMITTED in kinds:
        yield "(git)", "nothing recorded wrote it; git names the author of the commit"


def _day(at: datetime, now: datetime) -> str:
    """Return a local time if it is today, otherwise the date."""
    local = at.astimezone()
    return local.strftime("%H:%M" if local.date() == now.astimezone().date() else "%Y-%m-%d")
