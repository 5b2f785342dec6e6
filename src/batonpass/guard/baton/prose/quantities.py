"""Figures of the orders that do not fit those of the facts: another unit, limit, count, setting, total or day.

The orders are the task, its criteria and its rationale; the facts are the items and files that are carried.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from batonpass.guard.baton.problem import Problem, quote
from batonpass.guard.baton.prose.dates import find_dates
from batonpass.guard.baton.prose.figures import NUMBERS
from batonpass.guard.baton.prose.prose import Prose, a_doubt, sentence_at, words_of
from batonpass.guard.baton.prose.signs import (
    DATES,
    DIGITS,
    GIVEN,
    MEASURES,
    SPELLED,
    TOTALS,
    TextForms,
    mark_figures,
)
from batonpass.guard.baton.text_memory import remembered
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Decision

_FIGURE: Final = r"(?<![\w.,/-])(?P<number>\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,4})?|\d{1,12}(?:\.\d{1,4})?)"
_SPELLED: Final = f"(?a:{'|'.join(NUMBERS)})"

# Words that two sentences about the same thing share.
_TELLING: Final = re.compile(r"[^\W\d_]{4,30}")
_BEGINNING: Final = 6  # letters, so that "deviates" and "deviation" are one word
_COMMON: Final = frozenset(
    word[:_BEGINNING]
    for word in words_of(
        "that this with from into have more than must only they them then there their which what when will "
        "would should",
        "most least over under above below about each every after before between within according total amount please",
    )
)
# A sentence about another time contradicts nothing, nor does one about a part.
_ELSEWHEN: Final = re.compile(
    r"\b(?:last|previous(?:ly)?|earlier|former(?:ly)?|old|original(?:ly)?|ago|instead|was|were|used to|per|each"
    r"|every)\b",
    re.IGNORECASE,
)
_IN_PART: Final = re.compile(
    r"\b(?:so far|already|not|until|first|yesterday|supersedes?d?|replace[sd]?|remain(?:s|ing)?|left|more|other"
    r"|another)\b",
    re.IGNORECASE,
)

# Units that measure the same: spelling, what it measures, and one name for all spellings.
_UNITS: Final[Mapping[str, tuple[str, str]]] = {
    spelling: (dimension, names.split()[0])
    for dimension, units in {
        "money": "eur € euro euros|usd $ dollar dollars|gbp £|chf|nok|sek|dkk|pln|czk|huf|jpy ¥|cny|inr",
        "mass": "kg kilogram kilograms|g|mg|t ton tons tonne tonnes|lb lbs|oz",
        "length": "m metre metres meter meters|mm|cm|km|mi mile miles|ft feet|yd",
        "volume": "l litre litres liter liters|ml|cl|gal gallon gallons",
        "time": "s sec second seconds|ms|min minute minutes|h hour hours|day days|week weeks|month months|year years",
        "bytes": "kb|mb|gb|tb|kib|mib|gib",
        "temperature": "°c|°f",
        "share": "% percent",
    }.items()
    for names in units.split("|")
    for spelling in names.split()
}
_UNIT: Final = "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
_MEASURED: Final = re.compile(rf"(?:(?P<sign>[€$£])\s?)?{_FIGURE}\s?(?:(?P<unit>{_UNIT})(?!\w))?", re.IGNORECASE)
_TELLING_FIGURE: Final = 100  # smaller ones are the same by chance

_LIMIT: Final = re.compile(
    r"\b(?:at most|at least|no more than|not more than|more than|less than|no less than|up to|maximum(?: of| is)?"
    r"|minimum(?: of| is)?|above|below|over|under|exceeds?|exceeding|within|limit(?: of| is)|threshold(?: of| is| at)"
    rf"|budget(?: of| is)|to|of) (?:about )?(?P<sign>[€$£])?{_FIGURE}\s?(?:(?P<unit>{_UNIT})(?!\w))?",
    re.IGNORECASE,
)
_NAMED_LIMITS: Final = ("limit", "threshold", "budget")

_COUNT: Final = rf"(?P<number>{_SPELLED}|\d{{1,6}}) (?P<what>(?:[a-z-]{{2,20}} ){{0,1}}[a-z-]{{2,20}}s)\b"
_THE_COUNT: Final = re.compile(rf"\b(?:the|these|those|all|our)(?: the)? {_COUNT}", re.IGNORECASE)
_GIVEN: Final = (b"the", b"these", b"those", b"all", b"our")  # before the number
_DIGITS: Final = re.compile(rb"0+")
_GIVEN_DIGITS: Final = tuple(word + b" 0" for word in _GIVEN)
_SPELLED_WORDS: Final = frozenset(word.encode() for word in NUMBERS)
_A_COUNT: Final = re.compile(rf"(?<![\w.,-]){_COUNT}", re.IGNORECASE)
_NOT_COUNTED: Final = words_of(
    "days weeks months years hours minutes seconds times points percents euros dollars pounds metres meters is was has",
    "its this thus plus less as always words characters lines pages",
)
_CLOSE: Final = 1.5  # figures further apart are rarely meant to be the same

_SETTING: Final = re.compile(
    r"\b(?P<what>(?:[a-z-]{3,20} )?[a-z-]{3,20}) (?:of |is |= ?|to |at )?(?P<number>\d{1,12}(?:\.\d{1,6})?)"
    r"(?![\w%:/-]|[.,]\d)",
    re.IGNORECASE,
)
_LITTLE: Final = words_of("the and for with its our set use all any only has have was were been are that this")
_NO_SETTINGS: Final = _LITTLE | words_of(
    "about than least most over under until since before after from around above below is to at of more less every",
    "january february march april may june july august september october november december page line week step invoice",
    "ticket order shipment customer tour issue case row item between",
)

_TOTAL: Final = re.compile(
    rf"\b(?:in total|total|sum)\b[^\d.;\n]{{0,16}}{_FIGURE}"
    rf"|{_FIGURE.replace('number', 'before')}\s?(?:[A-Za-z€$£]{{1,7}} )?in (?:total|all)\b",
    re.IGNORECASE,
)
_SUMS: Final = frozenset({b"total", b"sum", b"all"})
_MONEY_COLUMN: Final = re.compile(
    r"amount|price|cost|net|gross|total|sum|value|eur|usd|gbp|chf|fee|charge", re.IGNORECASE
)
_PLAIN_NUMBER: Final = re.compile(r"\s{0,3}-?\d{1,12}(?:\.\d{1,4})?\s{0,3}")
_MOST_ROWS: Final = 10_000
_FEWEST_LINES: Final = 3  # a header and two rows: one row is no sum
_A_CENT: Final = 0.01

_DUE: Final = re.compile(r"\b(?:by|before|until|no later than|due|due on)\s(?:the )?$", re.IGNORECASE)
_COMES: Final = re.compile(
    r"\b(?:use|using|based on|with|from|needs?|take|wait for)\b[^.;\n]{0,80}\b(?:available|ready|arrives?"
    r"|provides?|delivers?"
    r"|publish(?:es|ed)?|comes?|sends?|sent|receives?|expected|releases?d?|due)\b"
    r"[^.;\n\d]{0,30}\b(?:on|from|after|before|at)\s(?:the )?$",
    re.IGNORECASE,
)
_NEAR: Final = 140  # characters before a date that say what it is


SIGN_WORDS: Final = _SPELLED_WORDS | _SUMS


def find_signs(forms: TextForms) -> int:
    """Return the signs of the checks below that a text has, besides those of `figures`."""
    signs = 0 if forms.words.isdisjoint(_SPELLED_WORDS) else GIVEN | SPELLED
    # A number in digits after a word by which it is taken for given.
    figures = forms.figures
    if figures is None or (b" 0" in figures and any(map(figures.__contains__, _GIVEN_DIGITS))):
        signs |= GIVEN
    if not forms.words.isdisjoint(_SUMS):
        signs |= TOTALS
    return signs


def find_other_figures(baton: Baton, prose: Prose, texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield figures of the orders that the facts contradict; `texts` has the words of the files that are carried."""
    signs = prose.order_signs
    if signs & GIVEN and prose.told:
        yield from _other_counts(baton, prose)
    if not signs & DIGITS:
        return
    if prose.told or len(prose.orders) > 1:
        if (signs | prose.told_signs) & MEASURES:
            yield from _other_units(prose)
            yield from _other_limits(prose)
        yield from _other_settings(baton, prose)
    if signs & TOTALS and texts:
        yield from _other_totals(prose.orders, texts)
    if signs & DATES:
        yield from _too_late(prose.orders)


def _find_given(text: str) -> Iterator["re.Match[str]"]:
    """Yield the matches of `_THE_COUNT` in a text without spelled numbers."""
    figures = mark_figures(text.lower())
    if figures is None or not text.isascii():
        yield from _THE_COUNT.finditer(text)
        return
    # Digits are rare: the pattern is tried only where a digit follows one of its first words.
    place = figures.find(b" 0")
    while place >= 0:
        for word in _GIVEN if figures.endswith(_GIVEN, 0, place) else ():
            if figures.endswith(word, 0, place) and (found := _THE_COUNT.match(text, place - len(word))):
                yield found
        place = figures.find(b" 0", place + 1)


def _find_any(text: str) -> Iterator["re.Match[str]"]:
    """Yield the matches of `_A_COUNT` in a text."""
    figures = mark_figures(lowered := text.lower())
    if figures is None or not text.isascii() or any(map(lowered.__contains__, NUMBERS)):
        yield from _A_COUNT.finditer(text)
        return
    for digits in _DIGITS.finditer(figures):
        if (found := _A_COUNT.match(text, digits.start())) is not None:
            yield found


def _amount(text: str) -> float:
    return float(text.replace(",", ""))


def _telling(text: str) -> set[str]:
    return {word.casefold()[:_BEGINNING] for word in _TELLING.findall(text)} - _COMMON


def _unit(found: "re.Match[str]") -> tuple[str, str] | None:
    spelled = found["unit"] or found["sign"]
    return _UNITS.get(spelled.lower()) if spelled else None


def _other_units(prose: Prose) -> Iterator[Problem]:
    """Yield a figure that stands with two units of the same kind: 8,400 kg here and 8,400 lb there."""
    first: dict[tuple[str, float], tuple[str, int, str, re.Match[str]]] = {}
    for number, text in enumerate(chain(prose.orders, prose.told)):
        for found in _MEASURED.finditer(text) if prose.signs[text] & MEASURES else ():
            unit = _unit(found)
            if unit is None or (amount := _amount(found["number"])) < _TELLING_FIGURE:
                continue
            name, place, other, seen = first.setdefault((unit[0], amount), (unit[1], number, text, found))
            if name == unit[1] or place == number:
                continue
            shown = seen.group()
            if _telling(sentence_at(other, seen.start())) & _telling(sentence_at(text, found.start())):
                yield a_doubt(
                    "signal-corruption.two-units",
                    f"{quote(shown)} and {quote(found.group())} are the same figure in two units.",
                    f"Is it {quote(shown)} or {quote(found.group())}?",
                )
                return


class _Limit(NamedTuple):
    """A limit in a text: how much, in which sentence, whether it is called a limit, and its words."""

    amount: float
    near: str
    named: bool
    shown: str


def _other_limits(prose: Prose) -> Iterator[Problem]:
    """Yield a limit that the task gives, and of which another text gives another figure."""
    ordered = _limits(prose.orders[0]) if prose.signs[prose.orders[0]] & MEASURES else {}
    others = [text for text in (*prose.orders[1:], *prose.told) if prose.signs[text] & MEASURES] if ordered else []
    for other in map(_limits, others):
        for unit in ordered.keys() & other.keys():
            one, another = ordered[unit], other[unit]
            comparable = one.named or another.named or unit == "%"
            if one.amount != another.amount and comparable and _telling(one.near) & _telling(another.near):
                yield a_doubt(
                    "signal-corruption.two-limits",
                    f"The task says {quote(one.shown)}, and elsewhere it is {quote(another.shown)}.",
                    f"Which limit holds: {quote(one.shown, words=6)} or {quote(another.shown, words=6)}?",
                )
                return


@remembered
def _limits(text: str) -> dict[str, _Limit]:
    """Return the limits in a text by unit, as far as it has only one in that unit."""
    limits: dict[str, list[_Limit]] = {}
    for found in _LIMIT.finditer(text):
        unit, near, shown = _unit(found), sentence_at(text, found.start()), found.group()
        if unit is None or _ELSEWHEN.search(near):
            continue
        if unit[0] != "share" and shown.lower().startswith(("to ", "of ")):
            continue  # a goal in percent is a limit; "12 bags of 20 kg" is none
        named = any(map(shown.lower().__contains__, _NAMED_LIMITS))
        limits.setdefault(unit[1], []).append(_Limit(_amount(found["number"]), near, named, shown))
    return {unit: found[0] for unit, found in limits.items() if len(found) == 1}


def _other_counts(baton: Baton, prose: Prose) -> Iterator[Problem]:
    """Yield a number of things that the orders take for given, and of which an item says another."""
    signs = prose.signs
    # What is carried was read before, and mostly counts nothing. Then the orders, which are new, need not be read.
    told = [text for text in prose.told if signs[text] & (DIGITS | SPELLED) and _count_now(text)]
    if not told:
        return
    found: list[re.Match[str]] = []
    for text in prose.orders:
        if signs[text] & GIVEN:
            found += _THE_COUNT.finditer(text) if signs[text] & SPELLED else _find_given(text)
    ordered = _count(found) if found else {}
    if not ordered:
        return
    done = {work.what for work in baton.completed}
    for text in told:
        for what, said in _count_now(text).items():
            number = ordered.get(what, said)
            less_so_far = said < number and text in done
            if said != number and not less_so_far and max(said, number) <= _CLOSE * min(said, number):
                yield a_doubt(
                    "signal-corruption.two-counts",
                    f"The task is about {number} {what}, and {quote(text, words=10)} has {said}.",
                    f"Are there {number} or {said} {what}?",
                )
                return


@remembered
def _count_now(text: str) -> Mapping[str, int]:
    """Return the quantity of each thing that a text names, except those of another time or of a part."""
    return _count(_find_any(text), only_now=True)


def _count(counted: Iterable["re.Match[str]"], *, only_now: bool = False) -> dict[str, int]:
    """Return how many there are of each thing, as far as one number of it is said."""
    counts: dict[str, set[int]] = {}
    for found in counted:
        words = found["what"].casefold().split()
        what = words[0] if words[0].endswith("s") else words[-1]
        if what in _NOT_COUNTED:
            continue
        if only_now:
            near = sentence_at(found.string, found.start())
            if _ELSEWHEN.search(near) or _IN_PART.search(near):
                continue
        counts.setdefault(what, set()).add(NUMBERS.get(found["number"].lower()) or int(found["number"]))
    return {what: numbers.pop() for what, numbers in counts.items() if len(numbers) == 1}


def _other_settings(baton: Baton, prose: Prose) -> Iterator[Problem]:
    """Yield a setting, such as a learning rate of 0.01, for which a decision or the rationale has another value."""
    decided = [one.what for one in baton.by_kind.get(Decision, ())]
    others = [text for text in (*prose.orders[1:], *decided) if prose.signs[text] & DIGITS]
    ordered = _settings(prose.orders[0]) if others and prose.signs[prose.orders[0]] & DIGITS else {}
    for text in others if ordered else ():
        for what, number in _settings(text).items():
            if ordered.get(what, number) != number and not _ELSEWHEN.search(text):
                yield a_doubt(
                    "signal-corruption.two-values",
                    f"{quote(what)} is {ordered[what]} in the task, and {number} in {quote(text, words=8)}.",
                    f"Is {quote(what)} {ordered[what]} or {number}?",
                )
                return


@remembered
def _settings(text: str) -> dict[str, str]:
    """Return the values in a text by the words before them, as far as it has one value for these words."""
    settings: dict[str, set[str]] = {}
    for found in _SETTING.finditer(text):
        words = found["what"].lower().split()
        if words[-1] not in _NO_SETTINGS:
            settings.setdefault(" ".join(word for word in words if word not in _LITTLE), set()).add(found["number"])
    return {what: numbers.pop() for what, numbers in settings.items() if len(numbers) == 1}


def _other_totals(orders: Sequence[str], texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a total that no column of the only carried table adds up to, and that stands nowhere in it."""
    name, table = next(iter(texts.items()))
    if len(texts) != 1 or not name.lower().endswith((".csv", ".tsv")) or not (sums := _sums(table)):
        return
    for found in chain.from_iterable(map(_TOTAL.finditer, orders)):
        total = _amount(found["number"] or found["before"])
        if all(abs(total - there) >= _A_CENT for there in sums):
            yield a_doubt(
                "signal-corruption.sum",
                f"The total is said to be {total:,.2f}, and {quote(name)} adds up to {sums[0]:,.2f}.",
                f"Is the total {total:,.2f}, or {sums[0]:,.2f} as in {quote(name)}?",
            )
            return


def _sums(table: str) -> list[float]:
    """Return the sums of the columns of money in a table, and their cells: a total may have a row of its own."""
    lines = table.splitlines()[:_MOST_ROWS]
    if len(lines) < _FEWEST_LINES:
        return []
    try:
        head, *rows = csv.reader(lines, delimiter=max(",;\t", key=lines[0].count))
    except (csv.Error, ValueError):
        return []
    totals: list[float] = []
    cells: list[float] = []
    for place, title in enumerate(head):
        column = [row[place] for row in rows if len(row) == len(head)]
        if _MONEY_COLUMN.search(title) and column and all(map(_PLAIN_NUMBER.fullmatch, column)):
            numbers = [*map(float, column)]
            totals.append(sum(numbers))
            cells += numbers
    return [*totals, *cells]


def _too_late(orders: Sequence[str]) -> Iterator[Problem]:
    """Yield a deadline that is before the day on which something that the task uses is there."""
    for text in orders:
        due = comes = None
        for begin, shown, day in find_dates(text):
            before = text[max(0, begin - _NEAR) : begin]
            if _COMES.search(before):
                comes = day, shown
            elif _DUE.search(before):
                due = day, shown
        if due is not None and comes is not None and due[0] < comes[0]:
            yield a_doubt(
                "signal-corruption.too-late",
                f"It is due on {quote(due[1])}, and what it needs comes on {quote(comes[1])}.",
                f"Is {quote(due[1])} right, although what the task needs comes on {quote(comes[1])}?",
            )
