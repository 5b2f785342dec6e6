"""Answers to an editor's questions about a file: a card for a line, a lens for a block, an author for each line."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine
from batonpass.accounts.blame.blame_words import quoted, spelled
from batonpass.accounts.blamed_lines.hover_card import card_of, inert
from batonpass.accounts.blamed_lines.line_author import AuthorKind, LineAuthor, authors_of
from batonpass.adapters.editor.file_answers import FileAnswers
from batonpass.adapters.editor.text_buffer import TextBuffer, map_lines
from batonpass.errors import BatonpassError, InvalidValueError, StoreUnavailableError
from batonpass.model.base.visible import visible

WHO: Final = "batonpass.whoWroteThis"

_AGENTS: Final = frozenset({AuthorKind.AGENT, AuthorKind.HEARSAY, AuthorKind.PERHAPS, AuthorKind.BROKEN})
_UNSAVED: Final = "not saved yet: save the file to learn who wrote this line"
_MOST_LENSES: Final = 500


class AskedBuffer(Struct, frozen=True, kw_only=True):
    """A file that an editor asks about, and its text there; None if the editor has not opened it."""

    uri: str
    path: Path
    buffer: TextBuffer | None


class _Block(Struct, frozen=True, kw_only=True):
    """Lines below one another in the buffer, from 0, with one author."""

    first: int
    last: int
    author: LineAuthor
    line: BlamedLine


class LineAnswers:
    """Answers for editors. Not for several threads at once."""

    def __init__(self, ledger: str | None) -> None:
        self._files = FileAnswers(ledger)

    def hover(self, asked: AskedBuffer, number: int, *, markdown: bool) -> str | None:
        """Return the card of a line, from 0; None if there is nothing to say."""
        try:
            blame = self._files.of(asked.path)
        except (StoreUnavailableError, InvalidValueError):
            return None  # nothing is recorded here, or it is not a file that has lines
        except BatonpassError as error:
            return f"**batonpass** {inert(f'· {error}')}" if markdown else f"batonpass: {error}"
        found = _saved_line(blame, asked, number)
        if found is None:
            is_there = asked.buffer is not None and number < len(asked.buffer.lines) and bool(blame.lines)
            return (inert(_UNSAVED) if markdown else _UNSAVED) if is_there else None
        return card_of(blame, found, now=datetime.now().astimezone(), markdown=markdown)

    def lenses(self, asked: AskedBuffer) -> list[dict[str, Any]]:
        """Return a code lens above each block of lines that an agent wrote, or may have."""
        blame = self._find(asked.path)
        if blame is None:
            return []
        now = datetime.now().astimezone()
        blocks = [block for block in _blocks(blame, asked) if block.author.kind in _AGENTS]
        return [_lens(asked, block, now) for block in blocks[:_MOST_LENSES]]

    def authors(self, asked: AskedBuffer) -> dict[str, Any]:
        """Return the authors of all lines, in blocks, for annotations beside the text."""
        blame = self._find(asked.path)
        now = datetime.now().astimezone()
        return {
            "version": None if asked.buffer is None else asked.buffer.version,
            "from": None if blame is None else "transcripts" if blame.is_heard else "ledger",
            "blocks": [] if blame is None else [_told(block, now) for block in _blocks(blame, asked)],
        }

    def _find(self, path: Path) -> Blame | None:
        try:
            return self._files.of(path)
        except BatonpassError:
            return None  # a hover says why


def _saved_line(blame: Blame, asked: AskedBuffer, number: int) -> BlamedLine | None:
    if asked.buffer is None:
        return blame.lines[number] if number < len(blame.lines) else None
    place = _mapped(blame, asked.buffer).get(number)
    return None if place is None else blame.lines[place]


def _mapped(blame: Blame, buffer: TextBuffer) -> dict[int, int]:
    return map_lines([line.text for line in blame.lines], buffer.lines)


def _blocks(blame: Blame, asked: AskedBuffer) -> Iterator[_Block]:
    """Yield the blocks of a buffer, from top to bottom; lines that are not saved have none."""
    count = len(blame.lines)
    places = {n: n for n in range(count)} if asked.buffer is None else _mapped(blame, asked.buffer)
    authors = [author for _, author in authors_of(blame)]
    first: int | None = None
    for number in sorted(places):
        author = authors[places[number]]
        if first is None:
            first = number
        following = places.get(number + 1)
        if following is None or not _is_same(author, authors[following]):
            yield _Block(first=first, last=number, author=author, line=blame.lines[places[number]])
            first = None


def _is_same(one: LineAuthor, other: LineAuthor) -> bool:
    if one is other:
        return True
    runs = [tuple(maker.run.id for maker in author.makers) for author in (one, other)]
    return (one.kind, one.label) == (other.kind, other.label) and runs[0] == runs[1]


def _title(block: _Block, now: datetime) -> str:
    author = block.author
    when = "" if author.at is None else f" · {spelled(author.at, now)}"
    task = f" · {quoted(author.makers[0].task)}" if len(author.makers) == 1 else ""
    # Editors read `$(name)` in a title as an icon.
    return visible(f"{author.label}{when}{task}").replace("$(", "$ (")


def _lens(asked: AskedBuffer, block: _Block, now: datetime) -> dict[str, Any]:
    place = {"line": block.first, "character": 0}
    command = {"title": _title(block, now), "command": WHO, "arguments": [asked.uri, block.first]}
    return {"range": {"start": place, "end": place}, "command": command}


def _told(block: _Block, now: datetime) -> dict[str, Any]:
    author = block.author
    return {
        "first": block.first,
        "last": block.last,
        "kind": author.kind.value,
        "label": visible(author.label),
        "title": _title(block, now),
        "at": None if author.at is None else author.at.isoformat(),
        "run": block.line.run,
    }
