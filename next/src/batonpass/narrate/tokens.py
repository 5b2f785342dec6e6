"""Words with tones, and lines of them. What others wrote comes in by `name`, `quoted`, `passage` or `visible` alone.

A task or a name may hold control characters, escape sequences, marks that turn the direction of writing, or a line that
looks like one of ours. They are made visible here, so no painter has to think of it.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from re import compile as compile_pattern
from typing import Final
from unicodedata import category

from msgspec import Struct

from batonpass.model.ids import short

QUOTED_LENGTH: Final = 72

# Names of ids that need no quotes: they cannot be taken for words of ours that stand beside them.
_PLAIN_NAME: Final = compile_pattern(r"[\w.:/@+-]+")
# Letters of which nothing is seen; `str.isprintable` knows of the control and format characters.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MILLISECOND: Final = 1_000
_SECOND: Final = 1_000_000
_MINUTE: Final = 60
_HOUR: Final = 3_600


class Tone(StrEnum):
    """What a word means to its reader. The word says it as well: a tone is never the only sign."""

    PLAIN = "plain"
    QUIET = "quiet"
    ACCENT = "accent"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Token(Struct, frozen=True):
    """Some words with one tone. They hold no line break and nothing invisible."""

    text: str
    tone: Tone = Tone.PLAIN


class Line(Struct, frozen=True):
    """A line: what stands at its beginning, its words, and what stands before the rest of it where it is too long."""

    tokens: tuple[Token, ...] = ()
    lead: str = ""
    rest: str = ""

    @property
    def text(self) -> str:
        """The line without tones."""
        return self.lead + "".join(token.text for token in self.tokens)


def line(*parts: str | Token | Iterable[Token], lead: str = "", rest: str | None = None) -> Line:
    """Return a line of our own words (text), of tokens and of groups of tokens."""
    tokens: list[Token] = []
    for part in parts:
        if isinstance(part, str):
            tokens.append(Token(part))
        elif isinstance(part, Token):
            tokens.append(part)
        else:
            tokens += part
    return Line(tuple(tokens), lead, " " * len(lead) if rest is None else rest)


def visible(text: str) -> str:
    """Return a text with all that would hide, move or overwrite something spelled out: an escape as `<U+001B>`."""
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    return "".join(letter if _is_seen(letter) else _ESCAPES.get(letter, f"<U+{ord(letter):04X}>") for letter in text)


def _is_seen(letter: str) -> bool:
    return (letter.isprintable() and letter not in _BLANK) or category(letter) == "Zs"


def name(text: str, tone: Tone = Tone.PLAIN, *, limit: int | None = None) -> Token:
    """Return a name that a program gave: an agent, a tool, a principal. An unusual one stands in quotes."""
    if _PLAIN_NAME.fullmatch(text) and visible(text) == text:
        return Token(cut(text, limit), tone)
    return quoted(text, tone, limit=limit)


def named(text: str, identity: str) -> tuple[Token, Token]:
    """Return a name with the last letters of its id, by which a command finds it."""
    return name(text), Token(f" {short(identity)}", Tone.QUIET)


def quoted(text: str | None, tone: Tone = Tone.PLAIN, *, limit: int | None = QUOTED_LENGTH) -> Token:
    """Return words of others in quotes, cut to a length; what was erased is said to be so."""
    if text is None:
        return Token("(erased)", Tone.QUIET)
    shown = visible(text.replace("\\", "\\\\").replace('"', '\\"'))  # so nothing in it ends the quotes
    return Token(f'"{cut(shown, limit)}"', tone)


def cut(text: str, limit: int | None) -> str:
    """Return the beginning of a text, with a sign where it was cut."""
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def passage(text: str | None, lead: str) -> list[Line]:
    """Return a long text of others line by line, each behind a bar: so none of them looks like a line of ours."""
    rows = ["(erased)"] if text is None else text.splitlines() or [""]
    return [line(visible(row), lead=f"{lead}│ ", rest=f"{lead}│ ") for row in rows]


def moment(at: datetime, *, seconds: bool = False) -> str:
    """Return a time as the clock on the reader's wall has it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")


def duration(took_us: int) -> str:
    """Return a duration as people say it: 14ms, 1.2s, 3m12s, 2h05m."""
    if took_us < _MILLISECOND:
        return "<1ms"
    if took_us < _SECOND:
        return f"{took_us // _MILLISECOND}ms"
    seconds = took_us / _SECOND
    if seconds < _MINUTE:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"


def counted(number: int, noun: str) -> str:
    """Return a number of things: 1 call, 14 calls."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
