"""Find statements that cannot both hold: typed ones by their key, decisions where their words leave no doubt.

Two decisions are compared only if they are the same words but for one thing: a negation, the opposite of the first
word, a number that is a threshold, or the words after `SUBJECT:` or `SUBJECT =`. Anything else is left to the reader,
because a false alarm costs more attention than it saves.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from msgspec import Struct

from batonpass.model.base.decimals import number_of
from batonpass.model.base.ids import ContentId, PrincipalId
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Claim, Constraint, Decision, Item, ItemValue, Operator, Report


class Saying(Struct, frozen=True, kw_only=True):
    """One side of a contradiction: the words, who said them, and when."""

    words: str
    by: PrincipalId
    at: datetime
    item: ContentId | None = None


class Contradiction(Struct, frozen=True, kw_only=True):
    """Statements about one subject that cannot all hold, the newest first."""

    subject: str
    sides: tuple[Saying, ...]

    @property
    def sentence(self) -> str:
        """Return it as a sentence, the newest first, each side with who said it and when."""
        return " against ".join(f'"{one.words}" ({one.by}, {one.at:%Y-%m-%d %H:%M} UTC)' for one in self.sides)


Told = tuple[ItemValue, Saying]
Key = tuple[str, ...]

_UPPER: Final = frozenset({Operator.LESS, Operator.AT_MOST})
_LOWER: Final = frozenset({Operator.MORE, Operator.AT_LEAST})
_BOUNDS: Final = _UPPER | _LOWER | {Operator.EQUAL}

_OPPOSITES: Final = {
    word: (pair[0], str(side))
    for pair in (
        ("include", "exclude"),
        ("enable", "disable"),
        ("allow", "forbid"),
        ("use", "avoid"),
        ("keep", "drop"),
        ("accept", "reject"),
        ("start", "stop"),
        ("add", "remove"),
        ("always", "never"),
    )
    for side, word in enumerate(pair)
}
_NOT: Final = re.compile(r"\b(?:do not|don't|does not|doesn't|must not|not|never|no longer)\s+")
_SUBJECT: Final = re.compile(r"(?P<subject>[^:=]{1,60}?)\s*(?:=\s*(?P<value>.{1,40})|:\s+(?P<token>\S{1,40}))")
# A number that is a bound: a comparing word before it, or a unit after it.
_NUMBER: Final = r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)"
_BOUND: Final = re.compile(
    rf"(?:\b(?:above|below|beyond|over|under|than|exceeding|at most|at least|up to|within"
    rf"|(?:threshold|limit|maximum|minimum)(?: of)?)\s+|[<>]=?\s*)(?P<bound>{_NUMBER})"
    rf"|(?P<measured>{_NUMBER})\s*(?:%|percent\b|sigma\b|ms\b|seconds?\b|minutes?\b|hours?\b|days?\b|weeks?\b|months?\b"
    rf"|rows?\b|kb\b|mb\b|gb\b|eur\b|usd\b|euros?\b|dollars?\b)",
)
_ALL_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)?")


def find_in_baton(baton: Baton) -> tuple[Contradiction, ...]:
    """Return the contradictions in a baton. Items that no longer stand contradict nothing."""
    return tuple(find_contradictions(_sayings(item for item in baton.items if item.id not in baton.fates)))


def find_contradictions(told: Iterable[Told]) -> Iterator[Contradiction]:
    """Yield the statements that cannot all hold, each contradiction once and its newest side first."""
    by_key: dict[Key, dict[str, Saying]] = {}
    bounds: dict[Key, list[tuple[Constraint, Saying]]] = {}
    for value, saying in sorted(told, key=lambda one: one[1].at):
        for key, choice in _choices(value):
            # Repeating a choice makes it newer, and no second side.
            sides = by_key.setdefault(key, {})
            sides.pop(choice, None)
            sides[choice] = saying
        if isinstance(value, Constraint) and value.key is not None:
            bounds.setdefault((value.key, value.unit or ""), []).append((value, saying))
    seen: set[frozenset[str]] = set()
    for key, sides in by_key.items():
        # One side may have been found by two ways: "never use x" is a negation and an opposite.
        words = frozenset(one.words for one in sides.values())
        if len(words) > 1 and words not in seen:
            seen.add(words)
            yield Contradiction(subject=key[1], sides=tuple(sides.values())[::-1])
    for (name, _), found in bounds.items():
        yield from _empty(name, found)


def _sayings(items: Iterable[Item]) -> Iterator[Told]:
    for item in items:
        inner: Sequence[ItemValue] = ()
        if isinstance(item.value, Report):
            inner = (*item.value.decisions, *item.value.claims)
        elif item.value is not None:
            inner = (item.value,)
        for value in inner:
            yield value, Saying(words=words_of(value), by=item.by, at=item.at, item=item.id)


def words_of(value: ItemValue) -> str:
    """Return the words of a statement."""
    match value:
        case Constraint():
            return value.sentence
        case Claim():
            return f"{value.key} = {value.value}{f' {value.unit}' if value.unit else ''}" if value.key else value.what
        case _:
            return str(getattr(value, "what", None) or getattr(value, "text", ""))


def _choices(value: ItemValue) -> Iterator[tuple[Key, str]]:
    """Yield the subjects of a statement, each with its choice."""
    match value:
        case Constraint() if value.key is not None and value.value is not None and value.operator in _BOUNDS:
            key = ("constraint", value.key, str(value.operator), value.unit or "", value.binds_to or "")
            yield key, _plain(value.value)
        case Claim() if value.key is not None and value.value is not None:
            # Figures of two dates differ, and both are true.
            yield ("claim", value.key, value.unit or "", str(value.as_of)), _plain(value.value)
        case Decision():
            yield from _decided(" ".join(value.what.lower().split()).rstrip(".!"))
        case _:
            return


def _decided(text: str) -> Iterator[tuple[Key, str]]:
    affirmed, negations = _NOT.subn("", text, count=2)
    if negations <= 1:
        yield ("decision", affirmed.removeprefix("always ")), "no" if negations else "yes"
    first, _, rest = text.partition(" ")
    if rest and (opposite := _OPPOSITES.get(first)) is not None and not negations:
        yield ("opposite", f"{opposite[0]} {rest}"), opposite[1]
    if (named := _SUBJECT.fullmatch(text)) is not None:
        yield ("subject", named["subject"]), named["value"] or named["token"]
    found = list(_BOUND.finditer(text))
    if len(found) == 1 and len(_ALL_NUMBERS.findall(text)) == 1:
        group = "bound" if found[0]["bound"] is not None else "measured"
        start, end = found[0].span(group)
        yield ("threshold", f"{text[:start]}…{text[end:]}"), _plain(found[0][group])


def _plain(value: str) -> str:
    """Return one spelling for each number: 3.0 is 3."""
    number = number_of(value)
    return value if number is None else str(number.normalize() + 0)


def _empty(name: str, found: Sequence[tuple[Constraint, Saying]]) -> Iterator[Contradiction]:
    """Yield the strictest bounds of one key if nothing lies between them."""
    lower = [(number, said) for one, said in found if (number := _bound(one, _LOWER)) is not None]
    upper = [(number, said) for one, said in found if (number := _bound(one, _UPPER)) is not None]
    if not lower or not upper:
        return
    low, high = max(lower, key=lambda one: one[0]), min(upper, key=lambda one: one[0])
    if low[0] > high[0]:
        sides = sorted((low[1], high[1]), key=lambda one: one.at, reverse=True)
        yield Contradiction(subject=name, sides=tuple(sides))


def _bound(constraint: Constraint, operators: frozenset[Operator]) -> Decimal | None:
    return number_of(constraint.value) if constraint.operator in operators and constraint.value is not None else None
