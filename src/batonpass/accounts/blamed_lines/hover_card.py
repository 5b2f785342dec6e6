r"""The answer for one line as a card that an editor shows: Markdown in which nothing but our own marks is live.

Tasks, names, commands and commit authors are words of others, and an editor would follow a link in them. Whatever could
begin a link, an image, a tag, an entity, code, emphasis, a formula, a table, a list or a heading is escaped, and so are
addresses that a renderer would find by itself. The rest is left as it is, since some editors show the backslashes.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame, render_blame
from batonpass.accounts.blame.blame_values import BlamedLine, Maker
from batonpass.accounts.blame.blame_words import BlameRow, quoted
from batonpass.accounts.blamed_lines.line_author import AuthorKind, LineAuthor, author_of
from batonpass.model.base.visible import visible

_LIVE: Final = re.compile(
    r"[\\`*\[\]<>&~|$@]"  # links, images, tags, entities, code, emphasis, tables, formulas, mail addresses
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore within a word is one
    r"|:(?=//)|(?<=www)\."  # addresses
    r"|^[#+=-]",  # the beginning of a heading, a rule or a list
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r"^(\d{1,9})([.)])")
_BREAK: Final = "  \n"
_MOST_ROWS: Final = 12
_MOST_LETTERS: Final = 600
_LONGEST_TASK: Final = 2_000

_SAID: Final = {
    AuthorKind.AGENT: "written by an agent: recorded and signed",
    AuthorKind.HEARSAY: "hearsay: an unsigned source says that an agent wrote it",
    AuthorKind.PERHAPS: "perhaps: it is unknown who wrote it",
    AuthorKind.COMMITTED: "nothing recorded wrote it; git names the author of the commit",
    AuthorKind.UNEXPLAINED: "nothing recorded wrote it, and it is in no commit",
    AuthorKind.BROKEN: "not to be trusted: a receipt behind this is not what was signed",
}


def inert(words: str) -> str:
    """Return somebody's words for Markdown: shown as they are on one line, and nothing of them is live."""
    shown = visible(" ".join(words.split()))
    return _NUMBERED.sub(r"\1\\\2", _LIVE.sub(r"\\\g<0>", shown))


def card_of(blame: Blame, line: BlamedLine, *, now: datetime, markdown: bool = True) -> str:
    """Return the facts about one line: in Markdown, or as plain text for editors without it."""
    author = author_of(blame, line)
    rows = [_shortened(row) for row in _rows(blame, line, author, now)]
    if not markdown:
        return "\n".join((author.label, _SAID[author.kind], *map(visible, rows)))
    head = f"**{inert(author.label)}** · {_SAID[author.kind]}"
    return _BREAK.join((head, *map(inert, rows)))


def _rows(blame: Blame, line: BlamedLine, author: LineAuthor, now: datetime) -> Iterator[str]:
    alone = replace(blame, lines=(line,), calls=(), places=())
    for number, row in enumerate(render_blame(alone, now=now)):
        if number == _MOST_ROWS:
            yield f"… batonpass blame {blame.path}:{line.number} shows all"
            return
        yield _told(row)
    if len(author.makers) == 1 and (task := _whole_task(author.makers[0])) is not None:
        yield f"task: {task}"


def _whole_task(maker: Maker) -> str | None:
    """Return the task if the row above has only its beginning."""
    task = maker.task
    if task is None or quoted(task) == quoted(task, full=True):
        return None
    words = (task.words or "").strip()
    return words[:_LONGEST_TASK] + "…" * (len(words) > _LONGEST_TASK) or None


def _told(row: BlameRow) -> str:
    return f"{row.indent}{''.join(part.text for part in row.parts)}".strip()


def _shortened(row: str) -> str:
    limit = _LONGEST_TASK + _MOST_LETTERS if row.startswith("task: ") else _MOST_LETTERS
    return row if len(row) <= limit else f"{row[:limit]}…"
