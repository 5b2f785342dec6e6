"""Permits on one line: `write:src/** where path under src, amount <= 100; at most 20 calls`.

    permit    = pattern [ "where" condition *( "," condition ) ] [ ";" limits ] [ ";" "until" time ]
    condition = argument ( "is" value | "in" "[" value *( "," value ) "]" | "under" word | "starts with" text
                         | "matches" text | "<=" decimal | ">=" decimal | "from" decimal "to" decimal )
    limits    = "at most" amount unit *( "," amount unit )

Patterns and words are written as they are, or in quotation marks if they contain a space or one of , ; " [ ]. Texts are
written in quotation marks, as in JSON. `str(permit)` returns the canonical spelling.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance, require_texts, require_utc, shorten
from batonpass.model.grants.condition import Between, Condition, Like, OneOf, Scalar, Under, like
from batonpass.model.grants.limits import UNITS, UNLIMITED, Limits
from batonpass.model.grants.pattern import read_pattern
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope

_LONGEST: Final = 64 * 1024
_TOKEN: Final = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([,;\[\]])|([^\s,;"\[\]]+))')
_WORDS: Final = {"true": True, "false": False, "null": None}
_WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,15})")


def read_scope(lines: Iterable[str]) -> Scope:
    """Return the scope of these lines, one permit each. Raises `InvalidValueError`."""
    return Scope(tuple(read_permit(line) for line in require_texts("permits", lines)))


def read_permit(line: str) -> Permit:
    """Return the permit that a line spells. Raises `InvalidValueError` with the problem."""
    return _read(require_instance("permit", line, str))


@lru_cache(maxsize=4096)
def _read(line: str) -> Permit:
    return _Line(line).permit()


def read_limits(text: str) -> Limits:
    """Return the limits that a text spells, such as `at most 20 calls, 5.50 spend`. Raises `InvalidValueError`."""
    if not text:
        return UNLIMITED
    line = _Line(text)
    limits = line.limits()
    line.require_end()
    return limits


def read_time(text: str) -> datetime:
    """Return the time that a text spells. Raises `InvalidValueError` if it is not in UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValueError("until", f"{shorten(text)} is not a time such as 2026-12-01T00:00:00Z") from None
    return require_utc("until", at)


class _Line:
    """Parses a line from left to right."""

    def __init__(self, line: str) -> None:
        if len(line) > _LONGEST:
            raise InvalidValueError("permit", f"has {len(line):,} characters; at most {_LONGEST:,} are read")
        self._line = line
        self._tokens: list[tuple[str, str]] = []
        at, end = 0, len(line.rstrip())
        while at < end:
            found = _TOKEN.match(line, at)
            if found is None:
                raise self._wrong("has a quotation mark that is not closed")
            quoted, mark, bare = found.groups()
            self._tokens.append(("text", quoted) if quoted else ("mark", mark) if mark else ("word", bare))
            at = found.end()
        self._next = 0

    def permit(self) -> Permit:
        pattern = read_pattern(self.word("a pattern"))
        where: list[Condition] = []
        limits, until = UNLIMITED, None
        if self.took("where"):
            where.append(self.condition())
            while self.took(","):
                where.append(self.condition())
        if self.took(";"):
            if not self.sees("until"):
                limits = self.limits()
                if not self.took(";"):
                    self.require_end()
                    return Permit(pattern, tuple(where), limits)
            self.need("until")
            until = read_time(self.word("a time"))
        self.require_end()
        return Permit(pattern, tuple(where), limits, until)

    def condition(self) -> Condition:
        argument, operator = self.word("the name of an argument"), self.word("what it has to be")
        if operator not in _OPERATORS:
            raise self._wrong(f"has {shorten(operator)} where one of {', '.join(_OPERATORS)} should be")
        return _OPERATORS[operator](self, argument)

    def prefix(self, argument: str) -> Like:
        self.need("with")
        return Like(argument, (self.text(), ""))

    def span(self, argument: str) -> Between:
        least = self.number()
        self.need("to")
        return Between(argument, least, self.number())

    def number(self) -> str:
        return self.word("a number")

    def limits(self) -> Limits:
        self.need("at")
        self.need("most")
        given: dict[str, str] = {}
        while not given or self.took(","):
            amount, unit = self.word("an amount"), self.word("a unit")
            if unit not in UNITS or unit in given:
                raise self._wrong(f"has {shorten(unit)} where one of {', '.join(UNITS)} should be, each once")
            given[unit] = amount
        spend = given.pop("spend", None)
        return Limits(spend=spend, **{unit: self._whole(text) for unit, text in given.items()})

    def values(self) -> tuple[Scalar, ...]:
        self.need("[")
        values = [self.value()]
        while self.took(","):
            values.append(self.value())
        self.need("]")
        return tuple(values)

    def value(self) -> Scalar:
        if self.kind() == "text":
            return self.text()
        text = self.word("a value")
        return _WORDS[text] if text in _WORDS else self._whole(text)

    def text(self) -> str:
        if self.kind() != "text":
            raise self._wrong("lacks a text in quotation marks")
        return self.word("a text")

    def word(self, wanted: str) -> str:
        """Take a word, or a text in quotation marks."""
        if self.kind() not in {"text", "word"}:
            raise self._wrong(f"lacks {wanted}")
        kind, token = self._tokens[self._next]
        self._next += 1
        if kind == "word":
            return token
        try:
            return str(json.loads(token))
        except ValueError:
            raise self._wrong(f"has {shorten(token)}, which is no text as JSON spells it") from None

    def took(self, token: str) -> bool:
        """Take a word or a mark, if it comes next."""
        seen = self.sees(token)
        self._next += seen
        return seen

    def sees(self, token: str) -> bool:
        return self._next < len(self._tokens) and self._tokens[self._next] in (("word", token), ("mark", token))

    def need(self, token: str) -> None:
        if not self.took(token):
            raise self._wrong(f"lacks {token!r}")

    def kind(self) -> str | None:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else None

    def require_end(self) -> None:
        if self._next < len(self._tokens):
            raise self._wrong(f"has {shorten(self._tokens[self._next][1])} where nothing more was expected")

    def _whole(self, text: str) -> int:
        if _WHOLE.fullmatch(text) is None:
            raise self._wrong(f"has {shorten(text)} where a whole number should be, or a text in quotation marks")
        return int(text)

    def _wrong(self, problem: str) -> InvalidValueError:
        return InvalidValueError("permit", f"{shorten(self._line)} {problem}")


_OPERATORS: Final[Mapping[str, Callable[[_Line, str], Condition]]] = {
    "is": lambda line, argument: OneOf(argument, (line.value(),)),
    "in": lambda line, argument: OneOf(argument, line.values()),
    "under": lambda line, argument: Under(argument, line.word("a path")),
    "starts": _Line.prefix,
    "matches": lambda line, argument: like(argument, line.text()),
    "<=": lambda line, argument: Between(argument, most=line.number()),
    ">=": lambda line, argument: Between(argument, least=line.number()),
    "from": _Line.span,
}
