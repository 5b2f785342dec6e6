"""Figures in prose that cannot be right: dates that do not exist, sums and shares and counts that do not add up.

Like all checks of prose these ask and never block, and read a text in linear time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations
from typing import Final

from batonpass.guard.baton.problem import Problem, Whom, quote
from batonpass.guard.baton.prose import Prose
from batonpass.model.base.kinds import ErrorType
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Claim

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
_SHORT_MONTH: Final = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DAY_FIRST: Final = re.compile(rf"\d(?:st|nd|rd|th)? (?:of )?(?:{_SHORT_MONTH})|\d-\d\d-\d")
_DIGIT: Final = re.compile(r"\d")
_DIGIT_AFTER: Final = re.compile(r" \d")
_MONTH_BEFORE: Final = re.compile(rf"(?:{_SHORT_MONTH})[a-z]{{0,6}}\.?$")
_LONGEST_MONTH: Final = 10  # characters, with a full stop
_BETWEEN: Final = re.compile(r"\s{0,3}(?:to|until|till|–|-)\s{0,3}(?:the )?", re.IGNORECASE)

_AMOUNT: Final = re.compile(
    r"(?:(?P<sign>[€$£])\s?)?(?<![\w.,])(?P<number>\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,2})?|\d{1,12}(?:\.\d{1,2})?)"
    r"(?:\s?(?P<unit>EUR|euros?|USD|dollars?|GBP|pounds?|CHF|€|\$|£)(?!\w))?"
)
_TOTAL: Final = re.compile(r"\b(?:in total|total|sum|altogether|together)\b[^\d.;\n]{0,12}$", re.IGNORECASE)
_SHARES: Final = re.compile(
    r"\b\d{1,3}(?:\.\d)?\s?% [\w -]{1,30}(?:(?:, | and |, and )\d{1,3}(?:\.\d)?\s?% [\w-]{1,30}){1,9}"
)
_MONEY: Final = ("€", "$", "£", "EUR", "euro", "USD", "dollar", "GBP", "pound", "CHF")
_SUMS: Final = ("total", "sum", "together")
_PERCENT: Final = re.compile(r"(\d{1,3}(?:\.\d)?)\s?%")
_WHOLE: Final = 100.0

_NUMBERS: Final[Mapping[str, int]] = {
    word: number
    for number, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 2
    )
}
_SPELLED: Final = f"(?a:{'|'.join(_NUMBERS)})"
_COUNTED: Final = re.compile(
    rf"\b(?:(?:the|these|all|our) )?(?P<number>{_SPELLED}|\d{{1,2}}) "
    r"(?P<what>(?:[a-z-]{2,20} ){0,4}[a-z-]{2,20}s)"
    r"(?: (?:of|in|for) (?:this |the )?[a-z-]{2,20})?: (?P<list>[^:.;\n?]{3,200})(?=[.;\n?]|$)",
    re.IGNORECASE,
)
# What comes right before the list, and a number before that: each is quicker to look for than the whole.
_ANNOUNCED: Final = re.compile(r"s(?: (?:of|in|for) (?:this |the )?[a-z-]{2,20})?: ")
_COUNT: Final = re.compile(rf"\d|{'|'.join(_NUMBERS)}")
_LONGEST_COUNT: Final = 130  # characters from the number to the colon
_SEPARATOR: Final = re.compile(r",? and |, | or ")
_ROWS: Final = re.compile(
    rf"\b(?P<number>{_SPELLED}|\d{{1,6}}) (?:[a-z-]{{2,20}} ){{0,4}}[a-z-]{{2,20}}s (?:in|of|from) "
    r"(?P<file>[\w.-]{1,80}\.(?:csv|tsv))\b",
    re.IGNORECASE,
)

# Two dozen units: enough to see that the same thing is measured in two.
_QUANTITY: Final = re.compile(
    r"(?<![\w.,])(?P<number>\d{1,3}(?:,\d{3}){1,4}|\d{1,12}(?:\.\d{1,4})?)\s?"
    r"(?P<unit>mg|kg|g|t|ml|cl|l|mm|cm|km|m|ms|s|min|h|days?|weeks?|hours?|minutes?|seconds?|units?|euros?|EUR|%|°C|MB|GB|kB)"
    r" (?P<after>(?:of |per )?[A-Za-z]{2,20}(?: [A-Za-z]{2,20}){1,2})"
)
_ANY_NUMBER: Final = re.compile(r"\d[\d,.]*")
_FEW_WORDS: Final = 4


def find_wrong_figures(baton: Baton, prose: Prose, rows: Mapping[str, int]) -> Iterator[Problem]:
    """Yield figures that contradict themselves or each other; `rows` has the number of rows of carried tables."""
    orders, lowered = prose.orders, prose.lowered_orders
    figures = _DIGIT.search(lowered) is not None  # only a count can be spelled
    dates = figures and _may_have_date(lowered)
    sums = figures and any(map(lowered.__contains__, _SUMS)) and any(map(prose.ordered.__contains__, _MONEY))
    shares = figures and "%" in lowered
    counts = ": " in lowered and _may_have_count(lowered)
    for text in orders if dates or sums or shares or counts or rows else ():
        if dates:
            yield from _wrong_dates(text)
        if sums:
            yield from _wrong_sums(text)
        if shares:
            yield from _wrong_shares(text)
        if counts:
            yield from _wrong_counts(text)
        if rows:
            yield from _wrong_rows(text, rows)
    if Claim in baton.by_kind and (claims := [claim.what for claim in baton.claims if claim.key is None]):
        yield from _two_figures(claims)
        yield from _two_quantities(orders, claims)


def _may_have_date(lowered: str) -> bool:
    """Return False if texts surely have no date."""
    if _DAY_FIRST.search(lowered) is not None:
        return True
    for found in _DIGIT_AFTER.finditer(lowered):
        if _MONTH_BEFORE.search(lowered, max(0, found.start() - _LONGEST_MONTH), found.start()) is not None:
            return True
    return False


def _may_have_count(lowered: str) -> bool:
    """Return False if texts surely announce no number of things before a list."""
    for found in _ANNOUNCED.finditer(lowered):
        if _COUNT.search(lowered, max(0, found.start() - _LONGEST_COUNT), found.start()) is not None:
            return True
    return False


def _wrong_dates(text: str) -> Iterator[Problem]:
    earlier: tuple[int, date] | None = None
    for found in _DATE.finditer(text):
        part = found.groupdict()
        month = part["month"] or part["month2"]
        number = _MONTHS[month.lower()] if month else int(part["month3"])
        day = int(part["day"] or part["day2"] or part["day3"])
        year = part["year"] or part["year2"] or part["year3"]
        shown = found.group().strip()
        if not 1 <= number <= len(_DAYS) + 5 or not 1 <= day <= _LONG_MONTHS[number]:
            yield _wrong(
                "signal-corruption.date", f"{quote(shown)} is no date.", f"Which date is meant by {quote(shown)}?"
            )
            return
        if year is None:
            continue
        try:
            when = date(int(year), number, day)
        except ValueError:
            yield _wrong(
                "signal-corruption.date", f"{quote(shown)} is no date.", f"Which date is meant by {quote(shown)}?"
            )
            return
        if part["weekday"] and _DAYS[when.weekday()] != part["weekday"].lower():
            really = _DAYS[when.weekday()].capitalize()
            yield _wrong(
                "signal-corruption.weekday",
                f"{quote(shown)} is a {really}.",
                f"Is the date in {quote(shown)} right, or the weekday?",
            )
        if earlier is not None and when < earlier[1] and _BETWEEN.fullmatch(text, earlier[0], found.start()):
            yield _wrong(
                "signal-corruption.interval",
                f"It ends on {quote(shown)}, before it begins.",
                f"When does it end, if not on {quote(shown)}?",
            )
        earlier = found.end(), when


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _wrong_sums(text: str) -> Iterator[Problem]:
    amounts: list[float] = []
    for found in _AMOUNT.finditer(text):
        if not (found["sign"] or found["unit"]):
            continue
        amount = _number(found["number"])
        if _TOTAL.search(text, max(0, found.start() - 24), found.start()) is None:
            amounts.append(amount)
            continue
        if len(amounts) > 1 and abs(sum(amounts) - amount) >= 0.01 and amount > max(amounts):  # noqa: PLR2004 - a cent
            yield _wrong(
                "signal-corruption.sum",
                f"The amounts make {sum(amounts):,.2f} and not {amount:,.2f}.",
                f"Is the total {sum(amounts):,.2f} or {amount:,.2f}?",
            )
        return


def _wrong_shares(text: str) -> Iterator[Problem]:
    for found in _SHARES.finditer(text):
        shares = [float(share) for share in _PERCENT.findall(found.group())]
        if sum(shares) > _WHOLE + 1:
            yield _wrong(
                "signal-corruption.shares",
                f"The shares in {quote(found.group())} make {sum(shares):g} %.",
                f"Which share is wrong in {quote(found.group(), words=8)}?",
            )


def _wrong_counts(text: str) -> Iterator[Problem]:
    for found in _COUNTED.finditer(text):
        said = _NUMBERS.get(found["number"].lower()) or int(found["number"])
        listed = [one for one in _SEPARATOR.split(found["list"]) if one.strip()]
        if 1 < len(listed) != said and max(len(one.split()) for one in listed) <= _FEW_WORDS:
            yield _wrong(
                "signal-corruption.count",
                f"{quote(found.group())} announces {said} and lists {len(listed)}.",
                f"Are there {said} or {len(listed)} {quote(found['what'])}?",
            )


def _wrong_rows(text: str, rows: Mapping[str, int]) -> Iterator[Problem]:
    for found in _ROWS.finditer(text):
        said = _NUMBERS.get(found["number"].lower()) or int(found["number"])
        there = rows.get(found["file"])
        if there is not None and there != said:
            yield _wrong(
                "signal-corruption.count",
                f"{quote(found['file'])} has {there} rows, and {quote(found.group(), words=8)} are announced.",
                f"Should {quote(found['file'])} have {said} rows or {there}?",
            )


def _two_figures(claims: Sequence[str]) -> Iterator[Problem]:
    """Yield claims that say the same of two different figures."""
    by_words: dict[str, str] = {}
    for claim in claims:
        words = _ANY_NUMBER.sub("#", claim.casefold()).strip(" .")
        other = by_words.setdefault(words, claim)
        if "#" in words and other.casefold().strip(" .") != claim.casefold().strip(" ."):
            yield _wrong(
                "signal-corruption.two-figures",
                f"Two claims give two figures: {quote(other, words=12)} and {quote(claim, words=12)}.",
                f"Which is right: {quote(other, words=9)} or {quote(claim, words=9)}?",
            )


def _two_quantities(orders: Sequence[str], claims: Sequence[str]) -> Iterator[Problem]:
    """Yield a quantity of the task that a claim gives in another unit or number."""
    said = [(found, text) for text in (*orders, *claims) for found in _QUANTITY.finditer(text)]
    for (one, _), (other, _) in combinations(said[:_FEW_QUANTITIES], 2):
        same = one["after"].casefold() == other["after"].casefold()
        if same and (one["number"], one["unit"]) != (other["number"], other["unit"]):
            yield _wrong(
                "signal-corruption.two-quantities",
                f"{quote(one.group())} and {quote(other.group())} do not agree.",
                f"Is it {quote(one.group(), words=6)} or {quote(other.group(), words=6)}?",
            )


_FEW_QUANTITIES: Final = 40  # compared with each other


def _wrong(check: str, about: str, question: str) -> Problem:
    return Problem(
        error=ErrorType.SIGNAL_CORRUPTION,
        check=check,
        about=about,
        blocking=False,
        doubtful=True,
        question=question,
        whom=Whom.PRODUCER,
    )
