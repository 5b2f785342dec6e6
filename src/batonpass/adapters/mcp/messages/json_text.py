"""JSON on a line: read so that no two readers can disagree, and written so that no reader splits it.

Python's own reader takes the last of two equal keys, guesses encodings and rounds numbers. Other readers take the first
key, or ignore case, and keep all digits. If a proxy judged a message and passed its original bytes on, the server might
see something else. So an enforcing proxy passes on the judged message, written anew.
"""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn, Self, TypeAlias

from msgspec import Struct

# The record shows 60 levels of arguments. Nobody may hide a difference, or a path, below those.
DEEPEST: Final = 50

_LONGEST_INTEGER: Final = 4000  # digits; Python does not read much longer ones
_ESCAPED: Final = json.encoder.encode_basestring_ascii
_PLAIN: Final = json.JSONEncoder(separators=(",", ":"))
_BLANK: Final = re.compile(r"\s*")
# Where some readers end a line: Node and Python at a carriage return, others at any of these.
_BREAK: Final = re.compile("[\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")


class SpelledFloat(float):
    """A number that fits a double but that Python would write differently: 1.50, 1e-7, -0."""

    spelling: str

    def __new__(cls, spelling: str) -> Self:
        """Return the number that a text spells."""
        number = super().__new__(cls, spelling)
        number.spelling = spelling
        return number


class UnfitNumber(Struct, frozen=True):
    """A number that no double holds, such as 1e400, or one with more digits than a double has.

    It is recorded as it is spelled, and meets no condition about numbers, because the server's reading of it is
    unknown.
    """

    spelling: str


Number: TypeAlias = int | float | UnfitNumber


class TwinKeys(dict[str, Any]):
    """An object in which a key occurs twice, or two keys differ only by case."""


class JsonFaultError(ValueError):
    """A text that is not JSON, or that two readers may read differently."""


class JsonLine(Struct, frozen=True):
    """The value on a line, and the reader's remarks about it."""

    value: Any
    spelled: bool = True  # a number in it has an unusual spelling
    repeated: bool = False  # a key in it occurs twice, letter by letter
    twins: bool = True  # some object in it is a `TwinKeys`

    def write(self, part: object) -> bytes:
        """Return a part of the value as a line of its own, with each number as it was spelled."""
        try:
            return write_json(part) if self.spelled else _PLAIN.encode(part).encode("ascii")
        except RecursionError:
            return write_json(part)


def read_json(line: bytes, *, constants: bool = False) -> JsonLine:
    """Return the value on a line, with the spelling of its numbers. Objects with ambiguous keys are `TwinKeys`.

    Raises `JsonFaultError` if the line is not one JSON value in UTF-8. With `constants`, NaN and infinities are
    accepted.
    """
    noticed = _Noticed()
    try:
        # Not from bytes: Python would also try UTF-16 and UTF-32, and accept a byte order mark.
        value = json.loads(
            line.decode("utf-8"),
            object_pairs_hook=noticed.read_object,
            parse_float=noticed.read_number,
            parse_int=noticed.read_number,
            parse_constant=float if constants else _refuse_constant,
        )
    except UnicodeDecodeError:
        raise JsonFaultError("it is not in UTF-8") from None
    except json.JSONDecodeError as error:
        follows = error.msg == "Extra data"
        raise JsonFaultError("something follows after the message" if follows else "it is not JSON") from None
    except RecursionError:
        raise JsonFaultError("it is nested too deep") from None
    return noticed.line(value)


def read_generously(line: bytes, *, first: bool = False) -> Iterator[JsonLine]:
    """Yield the values that the most lenient reader finds in a line: one, or several in a row.

    Of a repeated key the last value counts or, with `first`, the first, because readers differ. Encodings are guessed
    as Python does, invalid bytes are replaced as Node does, and control characters in texts pass. It stops where even
    such a reader finds nothing more.
    """
    text = line.decode(json.detect_encoding(line), "replace").strip()
    at = 0
    while at < len(text):
        noticed = _Noticed(first=first)
        decoder = json.JSONDecoder(
            strict=False,
            object_pairs_hook=noticed.read_object,
            parse_float=noticed.read_number,
            parse_int=noticed.read_number,
        )
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield noticed.line(value)
        at = _skip(text, at)


def read_plain_object(line: bytes) -> dict[str, Any] | None:
    """Return the object on a line if every reader finds the same in it, as in most messages; None if unsure.

    It is unsure if the encoding is another, some reader ends the line earlier, a key is ambiguous, or a number has an
    unusual spelling. Then the slower readers of this module decide.
    """
    if line[:1] != b"{" or line[1:2] in {b"", b"\0"}:
        return None
    try:
        text = line.decode("utf-8").removesuffix("\n")
        if text.splitlines() != [text]:
            return None
        value, end = _OBJECTS.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) or text[end:].isspace() else None


def _read_plain_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name.casefold() for name, _ in pairs}) < len(pairs):
        raise JsonFaultError("a key in it has a twin")
    return dict(pairs)


def _read_plain_number(spelling: str) -> int | float:
    number = _number(spelling)
    if type(number) is int or type(number) is float:
        return number
    raise JsonFaultError("a number in it has a spelling of its own")


_OBJECTS: Final = json.JSONDecoder(
    strict=False,
    object_pairs_hook=_read_plain_object,
    parse_float=_read_plain_number,
    parse_int=_read_plain_number,
)


def split_line(line: bytes) -> list[bytes]:
    """Return the lines that a reader finds if it also ends lines at other characters; nothing if it finds only one."""
    text = line.decode("utf-8", "replace")
    return [] if _BREAK.search(text) is None else [piece.encode() for piece in text.splitlines()]


def find_fault(value: object) -> str | None:
    """Return why two readers may disagree about a value; None if they cannot."""
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        each, depth = waiting.pop()
        if depth > DEEPEST:
            return f"it is nested deeper than {DEEPEST} levels"
        if isinstance(each, TwinKeys):
            return "a key appears twice in it, or differs from another only by case"
        if isinstance(each, str):
            if not _is_unicode(each):
                return "a text in it is not Unicode"
        elif isinstance(each, dict):
            waiting += [(part, depth + 1) for pair in each.items() for part in pair]
        elif isinstance(each, list):
            waiting += [(part, depth + 1) for part in each]
    return None


def fits_doubles(value: object) -> bool:
    """Return whether a reader that knows only integers and doubles keeps every number in a value."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, UnfitNumber):
            return False
        if isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return True


def write_json(document: object) -> bytes:
    """Return a document as one line of ASCII, with numbers as they were spelled, so that no reader can split it."""
    written: list[bytes] = []
    waiting: list[object] = [document]
    while waiting:  # no recursion: a deeply nested document must not crash the proxy
        match waiting.pop():
            case bytes() as done:
                written.append(done)
            case str() as text:
                written.append(_ESCAPED(text).encode("ascii"))
            case SpelledFloat() | UnfitNumber() as number:
                written.append(number.spelling.encode("ascii"))
            case dict() as table:
                parts = [part for key, item in table.items() for part in (b",", key, b":", item)]
                waiting += [b"}", *reversed(parts[1:]), b"{"]
            case list() as items:
                parts = [part for item in items for part in (b",", item)]
                waiting += [b"]", *reversed(parts[1:]), b"["]
            case other:
                written.append(_PLAIN.encode(other).encode("ascii"))
    return b"".join(written)


class _Noticed(Struct):
    """Callbacks for reading one line, which note facts that Python's reader hides."""

    spelled: bool = False
    repeated: bool = False
    twins: bool = False
    first: bool = False  # of a repeated key, the first value counts

    def line(self, value: object) -> JsonLine:
        return JsonLine(value, self.spelled, self.repeated, self.twins)

    def read_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(reversed(pairs)) if self.first else dict(pairs)
        self.repeated = self.repeated or len(found) < len(pairs)
        # Keys are unescaped here: `n\u0061me` is `name`. Some readers take `Name` for it as well, or a name with a
        # Kelvin sign or a long s in place of a letter.
        if len({name.casefold() for name in found}) == len(pairs):
            return found
        self.twins = True
        return TwinKeys(found)

    def read_number(self, spelling: str) -> Number:
        number = _number(spelling)
        if isinstance(number, SpelledFloat | UnfitNumber):
            self.spelled = True
        return number


def _number(spelling: str) -> Number:
    if spelling.removeprefix("-").isdigit() and spelling != "-0":
        return int(spelling) if len(spelling) <= _LONGEST_INTEGER else UnfitNumber(spelling)
    number = float(spelling)
    shortest = repr(number)
    if shortest == spelling:
        return number
    try:
        # A double is meant if the digits say no more than the shortest spelling of the nearest double.
        fits = Decimal(spelling) == Decimal(shortest)
    except InvalidOperation:
        fits = False
    return SpelledFloat(spelling) if fits else UnfitNumber(spelling)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _refuse_constant(name: str) -> NoReturn:
    raise JsonFaultError(f"{name} is no JSON")


def _is_unicode(text: str) -> bool:
    # Readers disagree about one half of a surrogate pair.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
