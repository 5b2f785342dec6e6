"""A sheet: labelled lines that fit one screen, for every ledger.

Each line is made safe and cut to the width of the screen. Its number of characters is bounded too, because combining
marks take no width and could otherwise continue without end.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import click

from batonpass.cli.output.terminal import Painted, columns, cut, paint, width
from batonpass.model.base.visible import visible
from batonpass.records.text import Found, Text

MORE: Final = "--json has all"

_LABEL: Final = 12
_BAR: Final = "│ "
_LEAST: Final = 40
_LONGEST: Final = 300

Parts = tuple[str, ...]


def room() -> int:
    """Return how many columns a sheet may take. Without a terminal there is no limit."""
    return max(_LEAST, columns())


def shorten(words: str, longest: int = 100) -> str:
    """Return the first line that is not empty, cut to `longest` characters."""
    head = words[: 4 * _LONGEST]
    line = next((line.strip() for line in head.splitlines() if line.strip()), "")
    whole = len(line) <= longest and words.strip() == line
    return line if whole else f"{line[: longest - 1].rstrip()}…"


def quoted(words: str, longest: int = 100) -> str:
    """Return recorded text on one line in quotation marks, so that it cannot be taken for ours."""
    return f'"{shorten(words, longest)}"'


class Sheet:
    """Lines to print; a section that is longer than `most` lines says how many it leaves out."""

    def __init__(self, columns: int, most: int) -> None:
        self.lines: list[Painted] = []
        self.most = most
        self._columns = columns

    def head(self, *parts: str) -> None:
        """Add a line without a label."""
        self.lines.append(_fitted(parts, self._columns))

    def row(self, label: str, *parts: str) -> None:
        """Add a line under a label; an empty label continues the one before."""
        name = paint(f"{label:<{_LABEL}}", dim=True) if label else Painted(" " * _LABEL)
        self.lines.append(Painted(name + _fitted(parts, self._columns - _LABEL)))

    def has_room(self, *parts: str) -> bool:
        """Return whether all of this fits into one line under a label."""
        return sum(width(visible(click.unstyle(part))) for part in parts) <= self._columns - _LABEL

    def rows(self, label: str, rows: Sequence[Parts], *, newest: bool = False) -> None:
        """Add lines under one label, the first or the newest ones, and say how many are left out."""
        left = max(0, len(rows) - self.most)
        shown = rows[left:] if newest else rows[: self.most]
        said = (paint(f"… {left:,} {'before' if newest else 'more'}; {MORE}", dim=True),)
        lines = [said, *shown] if newest and left else [*shown, said] if left else shown
        for number, parts in enumerate(lines):
            self.row("" if number else label, *parts)

    def packed(self, label: str, words: Sequence[str]) -> None:
        """Add a list of words, as many per line as fit."""
        rows: list[str] = []
        for word in words:
            if rows and width(rows[-1]) + width(word) + 2 <= self._columns - _LABEL - 1:
                rows[-1] += f", {word}"
            else:
                rows.append(word)
        self.rows(label, [(row,) for row in rows])

    def text(self, label: str, words: str, *, most: int) -> None:
        """Add recorded text behind a bar, wrapped, and say how much is left out."""
        columns = self._columns - (_LABEL if label else 2) - len(_BAR)
        shown: list[str] = []
        used = 0
        for piece, length in _wrapped(words, columns):
            if len(shown) == most:
                break
            shown.append(piece)
            used += length
        lines: list[str] = [f"{_BAR}{piece}" for piece in shown]
        if used < len(words.rstrip("\n")):
            left = f"… shortened: {used:,} of {len(words):,} characters; {MORE}"
            lines.append(Painted(_BAR + paint(left, dim=True)))
        for number, line in enumerate(lines):
            if label:
                self.row("" if number else label, line)
            else:
                self.head("  ", line)


def _fitted(parts: Sequence[str], columns: int) -> Painted:
    line = "".join(part if isinstance(part, Painted) else visible(part[:_LONGEST]) for part in parts)
    return Painted(cut(line, columns))


def _wrapped(words: str, columns: int) -> Iterator[tuple[str, int]]:
    """Yield pieces that fit a line, each with its number of characters in the text."""
    for line in words.rstrip("\n").split("\n"):
        start = 0
        while True:
            end = _end(line, start, columns)
            yield visible(line[start:end].expandtabs(4)).rstrip(), end - start + (end == len(line))
            start = end
            if start >= len(line):
                break


def _end(line: str, start: int, columns: int) -> int:
    used, end = 0, start
    while end < len(line) and end - start < _LONGEST:
        used += 4 if line[end] == "\t" else width(visible(line[end]))
        if used > columns:
            break
        end += 1
    space = line.rfind(" ", start, end)
    if end < len(line) and space > start + (end - start) // 2:
        return space + 1
    return max(end, min(start + 1, len(line)))


def words_of(text: Text | None) -> str:
    """Return a text, or say why it is not here."""
    if text is None:
        return "unknown"
    if text.found is not Found.KEPT or text.words is None:
        return text.first_line
    return text.words
