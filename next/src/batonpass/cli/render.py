"""Lines, rows and JSON on stdout, words about them on stderr. It paints what `narrate` says, and says nothing itself.

A pipe gets plain lines. On a terminal rich draws them: with colours unless NO_COLOR is set, and a line that is too long
goes on behind its own lead, so that no text of others reaches the left edge and looks like a line of ours.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Final
from unicodedata import combining, east_asian_width

from msgspec import Struct, json

from batonpass.errors import BatonpassError
from batonpass.narrate.tokens import Line, Token, Tone, line, visible

_STYLES: Final = {
    Tone.PLAIN: "",
    Tone.QUIET: "dim",
    Tone.ACCENT: "cyan",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.BAD: "bold red",
}
_NARROWEST: Final = 24  # columns: with less beside its lead, a line goes on below the lead
_GAP: Final = "  "


class Screen(Struct, frozen=True, kw_only=True):
    """Where a command says what it has to say."""

    is_json: bool = False
    is_quiet: bool = False

    def lines(self, lines: Iterable[Line]) -> None:
        """Print lines."""
        if sys.stdout.isatty():
            _draw(lines)
        else:
            sys.stdout.writelines(each.text.rstrip() + "\n" for each in lines)

    def rows(self, header: Sequence[str], rows: Sequence[Sequence[Sequence[Token]]]) -> None:
        """Print rows in columns. On a terminal the last column is cut at its edge; in a pipe nothing is cut."""
        every: list[Sequence[Sequence[Token]]] = [[(Token(each, Tone.QUIET),) for each in header], *rows]
        widths = [max(map(_width_of, column)) for column in zip(*every, strict=True)]
        lines = [_row(cells, widths) for cells in every]
        if sys.stdout.isatty():
            _draw(lines, is_cut=True)
        else:
            self.lines(lines)

    def json(self, value: object) -> None:
        """Print a value as one line of JSON."""
        sys.stdout.write(as_json(value) + "\n")

    def note(self, text: str) -> None:
        """Say something beside the answer, unless only the answer is wanted."""
        if not (self.is_json or self.is_quiet):
            sys.stderr.write(visible(text) + "\n")


def as_json(value: object) -> str:
    """Return a value as JSON in which everything invisible is spelled as an escape: a terminal obeys none of it."""
    text = json.encode(value).decode()
    return text if text.isprintable() else "".join(map(_escape, text))


def _escape(letter: str) -> str:
    if letter.isprintable():
        return letter
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def print_error(error: BatonpassError, *, is_json: bool) -> None:
    """Say what went wrong: a sentence with its code and what may have been meant, or the problem as JSON."""
    if is_json:
        from batonpass.api.problems import problem_of  # noqa: PLC0415 - most commands end well

        sys.stdout.write(as_json(problem_of(error)) + "\n")
        return
    sys.stderr.write(f"batonpass: {visible(str(error))} [{error.code}]\n")
    for choice in error.facts.get("choices", ()):
        sys.stderr.write(f"  {visible(choice['shown'])}\n")


def _row(cells: Sequence[Sequence[Token]], widths: Sequence[int]) -> Line:
    tokens: list[Token] = []
    for cell, width in zip(cells[:-1], widths, strict=False):
        tokens += [*cell, Token(" " * (width - _width_of(cell)) + _GAP)]
    return line(tokens, cells[-1])


def _width_of(tokens: Sequence[Token]) -> int:
    return sum(_columns(token.text) for token in tokens)


def _columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _draw(lines: Iterable[Line], *, is_cut: bool = False) -> None:
    from shutil import get_terminal_size  # noqa: PLC0415 - as what follows

    from rich.console import Console  # noqa: PLC0415 - takes as long as the rest of a command; a pipe needs none of it
    from rich.text import Text  # noqa: PLC0415 - as above

    size = get_terminal_size()  # rich takes a dumb terminal to be 80 columns wide, whatever it says
    console = Console(width=size.columns, height=size.lines, highlight=False, markup=False, emoji=False)
    for each in lines:
        text = Text.assemble(*((token.text, _STYLES[token.tone]) for token in each.tokens))
        lead, rest = each.lead, each.rest
        if is_cut:
            text.truncate(console.width - _columns(lead), overflow="ellipsis")
            parts: Iterable[Text] = [text]
        else:
            if console.width - max(_columns(lead), _columns(rest)) < _NARROWEST:
                text, lead, rest = Text.assemble((lead, "dim"), text), "", _GAP
            parts = text.wrap(console, console.width - max(_columns(lead), _columns(rest)), overflow="fold") or [text]
        for number, part in enumerate(parts):
            console.print(Text.assemble((rest if number else lead, "dim"), part), soft_wrap=True)
