"""Output to the terminal. Text that a person or a model wrote is made harmless here, and nowhere else.

Text from a ledger may hold escape sequences that repaint a terminal, or marks that reverse its direction. `say` and
`table` escape everything that `paint` has not already made safe, so nobody can forget it. JSON escapes itself.
"""

import os
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import click

from batonpass.model.base.visible import visible

_GAP: Final = "  "
_BAR: Final = "  │ "
_CUT: Final = "…"
_LEAST: Final = 24  # below that, a cut column says nothing, and a wrapped line is better


class Painted(str):
    """Text that is safe to print, and may have colours in it."""

    __slots__ = ()


def paint(text: str, colour: str | None = None, *, bold: bool = False, dim: bool = False) -> Painted:
    """Return text, made safe, in a colour."""
    if not text or (colour is None and not bold and not dim):
        return Painted(visible(text))
    return Painted(click.style(visible(text), fg=colour, bold=bold or None, dim=dim or None))


def say(*parts: str, to_stderr: bool = False) -> None:
    """Print one line of parts."""
    line = "".join(part if isinstance(part, Painted) else visible(part) for part in parts)
    click.echo(line, err=to_stderr, color=False if is_plain() else None)


def tell(*parts: str) -> None:
    """Print a message to stderr, where it does not mix with data."""
    say(*parts, to_stderr=True)


def say_text(text: str, *, at_most: int | None = None) -> None:
    """Print recorded text line by line behind a bar, so that it cannot be taken for our own output."""
    lines = text.removesuffix("\n").split("\n")
    for line in lines[:at_most]:
        say(_BAR, line.expandtabs(4))
    if at_most is not None and len(lines) > at_most:
        say(_BAR, paint(f"{_CUT} {len(lines) - at_most:,} more lines", dim=True))


def say_json(value: Any, *, line: bool = False) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Print a value as JSON in ASCII, indented or on one line. Times and structs may stand anywhere in it."""
    import json  # noqa: PLC0415 - most commands print text

    from batonpass.records.json_shapes import in_json  # noqa: PLC0415 - as above

    click.echo(json.dumps(value, indent=None if line else 2, default=in_json))


def table(
    rows: Sequence[Sequence[str]],
    *,
    header: Sequence[str] = (),
    indent: str = "",
    gap: str = _GAP,
    fold: bool = False,
) -> None:
    """Print rows in columns. On a terminal the last column is cut at the end of the line; in a pipe nothing is cut.

    With `fold` the last column continues on the next line, and nothing is cut.
    """
    safe = [[cell if isinstance(cell, Painted) else Painted(visible(cell)) for cell in row] for row in rows]
    lines = [[paint(name, dim=True) for name in header], *safe] if header else safe
    if not lines:
        return
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    before = sum(widths[:-1]) + len(gap) * (len(widths) - 1)
    room = max(_LEAST, columns() - before - len(indent))
    for line in lines:
        *cells, last = line
        padded = [Painted(cell + " " * (size - width(cell))) for cell, size in zip(cells, widths, strict=False)]
        first, *others = folded(last, room) if fold else [cut(last, room)]
        say(indent, Painted(gap.join([*padded, first]).rstrip()))
        for other in others:
            say(indent, " " * before, Painted(other))


def text_rows(name: str, text: str) -> list[list[str]]:
    """Return the rows of a text beside its name: each of its lines a row, marked if there are several."""
    first, *others = text.strip().split("\n")
    if not others:
        return [[paint(name, dim=True), first]]
    return [[paint(name, dim=True), f"│ {first}"], *(["", f"│ {line}"] for line in others)]


def width(text: str) -> int:
    """Return how many columns a text takes in a terminal."""
    plain = click.unstyle(text)
    if plain.isascii():
        return len(plain)
    # A text has few different characters, however long it is.
    return sum(_columns(character) * times for character, times in Counter(plain).items())


def cut(text: str, room: int) -> str:
    """Return as much of a text as fits; a coloured text keeps its colour only if all of it fits."""
    if width(text) <= room:
        return text
    kept, used = "", 0
    for character in click.unstyle(text):
        used += _columns(character)
        if used > max(room, 1) - 1:
            break
        kept += character
    return kept.rstrip() + _CUT


def folded(text: str, room: int) -> list[str]:
    """Return a text in lines that fit, broken between words, or within a word that is too long.

    A coloured text keeps its colour only if all of it fits.
    """
    if width(text) <= room:
        return [text]
    lines = [""]
    for word in click.unstyle(text).split(" "):
        if width(f"{lines[-1]} {word}") <= room and lines != [""]:
            lines[-1] += f" {word}"
            continue
        piece, used = "", 0
        lines += [] if lines == [""] else [""]
        for character in word:
            used += _columns(character)
            if used > room:
                lines[-1] = piece
                lines.append("")
                piece, used = "", _columns(character)
            piece += character
        lines[-1] = piece
    return lines


def uncoloured(text: str) -> str:
    """Return a text without its colours."""
    return click.unstyle(text)


def is_terminal() -> bool:
    """Return whether a person is looking at stdout."""
    return sys.stdout.isatty()


def columns() -> int:
    """Return how long a line may be. Without a terminal there is no limit."""
    if not is_terminal():
        return sys.maxsize
    import shutil  # noqa: PLC0415 - it loads modules for archives

    return shutil.get_terminal_size().columns


@lru_cache(maxsize=1024)
def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def is_plain() -> bool:
    """Return whether the person asked for no colours."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
