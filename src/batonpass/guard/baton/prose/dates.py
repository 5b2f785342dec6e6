"""Dates in prose: where they stand, and those that cannot be right.

Like all checks of prose these ask and never block, and read a text in linear time.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from itertools import pairwise
from typing import Final

from batonpass.guard.baton.problem import Problem, quote
from batonpass.guard.baton.prose.prose import a_doubt
from batonpass.guard.baton.prose.signs import mark_figures

_MONTHS: Final[Mapping[str, int]] = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        1,
    )
    for name in names.split()
}
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LONG_MONTHS: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# Only ASCII letters: a pattern that ignores capitals takes a long s for an s, and then we do not know the name.
_MONTH: Final = f"(?a:{'|'.join(sorted(_MONTHS, key=len, reverse=True))})"
_DATE: Final = re.compile(
    rf"(?:\b(?P<weekday>{'|'.join(_DAYS)}),? (?:the )?)?"
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month>{_MONTH})\b\.?(?:,? (?P<year>\d{{4}})\b)?"
    rf"|\b(?P<month2>{_MONTH})\.? (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (?P<year2>\d{{4}})\b)?"
    r"|(?<![\d-])(?P<year3>\d{4})-(?P<month3>\d{2})-(?P<day3>\d{2})(?![\d-]))",
    re.IGNORECASE,
)
# What every date has, found from its digits: these are rare in prose, and the whole pattern is slow to fail.
_SHORT_MONTH: Final = b"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DAY_FIRST: Final = re.compile(rb"0(?:(?:st|nd|rd|th)? (?:of )?(?:%b)|-00-0)" % _SHORT_MONTH)
_MONTH_BEFORE: Final = re.compile(rb"(?:%b)[a-z]{0,6}\.?$" % _SHORT_MONTH)
_LONGEST_MONTH: Final = 10  # characters, with a full stop
_BETWEEN: Final = re.compile(r"\s{0,3}(?:to|until|till|–|-)\s{0,3}(?:the )?", re.IGNORECASE)
# What is first and what is last, in words before two dates.
_FIRST_LAST: Final = (
    (re.compile(r"\bcheck-?in\b", re.IGNORECASE), re.compile(r"\bcheck-?out\b", re.IGNORECASE)),
    (
        re.compile(r"\b(?:start|begin)(?:s|ning|ing)?\b", re.IGNORECASE),
        re.compile(r"\bend(?:s|ing)?\b|\bfinish", re.IGNORECASE),
    ),
    (
        re.compile(r"\b(?:depart|leav|outbound|there on)", re.IGNORECASE),
        re.compile(r"\b(?:return|back|inbound)", re.IGNORECASE),
    ),
    (re.compile(r"\bopen", re.IGNORECASE), re.compile(r"\bclos", re.IGNORECASE)),
    (
        re.compile(r"\b(?:issued|signed|ordered)", re.IGNORECASE),
        re.compile(r"\b(?:due|expires|delivered)", re.IGNORECASE),
    ),
)
_MARKS_OF_A_QUOTE: Final = frozenset("\"'`“”«")
MONTH_WORDS: Final = frozenset(name.encode() for name in _MONTHS)


def may_have_date(figures: bytes | None) -> bool:
    """Return False if a text surely has no date."""
    if figures is None or _DAY_FIRST.search(figures) is not None:
        return True
    place = figures.find(b" 0")
    while place >= 0:
        if _MONTH_BEFORE.search(figures, max(0, place - _LONGEST_MONTH), place) is not None:
            return True
        place = figures.find(b" 0", place + 1)
    return False


def find_dates(text: str) -> Iterator[tuple[int, str, tuple[int, int, int]]]:
    """Yield the dates in a text: where each begins, its words, and year, month and day; the year is 0 if not said."""
    if not may_have_date(mark_figures(text.lower())):
        return
    for found in _DATE.finditer(text):
        yield found.start(), found.group().strip(), _read_date(found.groupdict())


def _read_date(part: Mapping[str, str | None]) -> tuple[int, int, int]:
    """Return year, month and day of a date as it is written, which may be none; the year is 0 if it is not said."""
    month = part["month"] or part["month2"]
    number = _MONTHS[month.lower()] if month else int(part["month3"] or 0)
    year = part["year"] or part["year2"] or part["year3"] or 0
    return int(year), number, int(part["day"] or part["day2"] or part["day3"] or 0)


def find_wrong_dates(text: str) -> Iterator[Problem]:
    """Yield dates that do not exist, weekdays that another day is, and intervals that end before they begin."""
    yield from _wrong_days(text)
    yield from _wrong_order(text)


def _wrong_days(text: str) -> Iterator[Problem]:
    earlier: tuple[int, date] | None = None
    for found in _DATE.finditer(text):
        if text[max(0, found.start() - 1) : found.start()] in _MARKS_OF_A_QUOTE:
            continue  # it is spoken of, and not used
        part = found.groupdict()
        year, number, day = _read_date(part)
        shown = found.group().strip()
        if not 1 <= number <= len(_DAYS) + 5 or not 1 <= day <= _LONG_MONTHS[number]:
            yield a_doubt(
                "signal-corruption.date", f"{quote(shown)} is no date.", f"Which date is meant by {quote(shown)}?"
            )
            return
        if not year:
            continue
        try:
            when = date(year, number, day)
        except ValueError:
            yield a_doubt(
                "signal-corruption.date", f"{quote(shown)} is no date.", f"Which date is meant by {quote(shown)}?"
            )
            return
        if part["weekday"] and _DAYS[when.weekday()] != part["weekday"].lower():
            really = _DAYS[when.weekday()].capitalize()
            yield a_doubt(
                "signal-corruption.weekday",
                f"{quote(shown)} is a {really}.",
                f"Is the date in {quote(shown)} right, or the weekday?",
            )
        if earlier is not None and when < earlier[1] and _BETWEEN.fullmatch(text, earlier[0], found.start()):
            yield a_doubt(
                "signal-corruption.interval",
                f"It ends on {quote(shown)}, before it begins.",
                f"When does it end, if not on {quote(shown)}?",
            )
        earlier = found.end(), when


def _wrong_order(text: str) -> Iterator[Problem]:
    """Yield two dates of which the last is before the first, by the words before them."""
    dates = [(text[max(0, begin - 30) : begin], shown, day) for begin, shown, day in find_dates(text)]
    for (before, _, one), (after, shown, other) in pairwise(dates):
        ordered = any(first.search(before) and last.search(after) for first, last in _FIRST_LAST)
        if ordered and other < one and (one[0] or not other[0]):
            yield a_doubt(
                "signal-corruption.interval",
                f"It ends on {quote(shown)}, before it begins.",
                f"When does it end, if not on {quote(shown)}?",
            )
            return
