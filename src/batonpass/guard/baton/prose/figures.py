"""Figures in prose that cannot be right: sums, shares and counts that do not add up; `dates` looks at dates.

Like all checks of prose these ask and never block, and read a text in linear time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, combinations
from operator import methodcaller
from typing import Final

from batonpass.guard.baton.problem import Problem, quote
from batonpass.guard.baton.prose.dates import MONTH_WORDS, find_wrong_dates, may_have_date
from batonpass.guard.baton.prose.prose import Prose, a_doubt, words_of
from batonpass.guard.baton.prose.signs import (
    COUNTS,
    DATES,
    DIGITS,
    HOURS,
    IMPOSSIBLE,
    MEASURES,
    SHARES,
    SUMS,
    TextForms,
)
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Claim, Decision

_AMOUNT: Final = re.compile(
    r"(?:(?P<sign>[€$£])\s?)?(?<![\w.,])(?P<number>\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,2})?|\d{1,12}(?:\.\d{1,2})?)"
    r"(?:\s?(?P<unit>EUR|euros?|USD|dollars?|GBP|pounds?|CHF|€|\$|£)(?!\w))?"
)
_TOTAL: Final = re.compile(r"\b(?:in total|total|sum|altogether|together)\b[^\d.;\n]{0,12}$", re.IGNORECASE)
_SHARES: Final = re.compile(
    r"\b\d{1,3}(?:\.\d)?\s?% [\w -]{1,30}(?:(?:, | and |, and )\d{1,3}(?:\.\d)?\s?% [\w-]{1,30}){1,9}"
)
# The same for hours, points and everything else that is counted: "24 hours, 60 hours, in total 120 hours".
_COUNTABLE: Final = re.compile(r"(?<![\w.,:-])(?P<number>\d{1,6}(?:\.\d{1,2})?) (?P<unit>[a-z]{2,20})\b", re.IGNORECASE)
_OF_ALL: Final = re.compile(
    r"(?<![\w.,])(\d{3,5}(?:\.\d)?)\s?% (?:of (?:all|the|our|these|those)|were|was|are|had|have)\b"
)
_HOURS: Final = re.compile(
    r"\bfrom (\d{1,2}):(\d\d)(?: h)? (?:to|until|till) (\d{1,2}):(\d\d)\b[^.;\n]{0,40}?\b(?:one|a"
    r"|single)\b[^.;\n]{0,20}?"
    r"\b(\d{1,2})[ -]hours?\b|\bfrom (\d{1,2}):(\d\d) (?:to|until|till) (\d{1,2}):(\d\d) \((\d{1,2}) hours?\)",
    re.IGNORECASE,
)
# Values that nothing can have.
_IMPOSSIBLE: Final = re.compile(
    r"\b(?:latitude|lat\.?)(?: of| is|:|=)? ?-?(?:9[1-9]|[1-9]\d{2,5})(?:\.\d{1,8})?\b"
    r"|\b(?:longitude|long?\.?)(?: of| is|:|=)? ?-?(?:18[1-9]|19\d|[2-9]\d{2}|\d{4,6})(?:\.\d{1,8})?\b"
    r"|(?<![\d:.])(?:2[5-9]|[3-9]\d):[0-5]\d(?: (?:h|UTC|CET|o'clock|am|pm)\b)"
    r"|\b(?:at|by|before|until|from|to) (?:[01]?\d|2[0-3]):[6-9]\d\b"
    r"|\bprobability (?:of |is )?(?:[2-9]|1\.\d{0,4}[1-9])\b",
    re.IGNORECASE,
)
_BOUNDED: Final = frozenset({b"latitude", b"lat", b"longitude", b"long", b"lon", b"probability"})
_BOUNDED_FIGURES: Final = (
    re.compile(rb"lat(?:itude|\.)?(?: of| is|:|=)? ?-?0"),
    re.compile(rb"lon(?:g|gitude)?\.?(?: of| is|:|=)? ?-?0"),
    re.compile(rb"probability (?:of |is )?0"),
)
_WEIGHTS: Final = re.compile(
    r"\b[\w-]{2,25} \(\d{1,3}(?:\.\d)?\s?%\)(?:(?:, | and |, and )(?:[\w-]{2,25} ){1,3}\(\d{1,3}(?:\.\d)?\s?%\)){1,9}"
)
_SUMS: Final = frozenset({b"total", b"sum", b"together", b"altogether"})
# Behind each word the part of it that is looked for, and then a figure.
_SUM_AND_FIGURE: Final = tuple(
    (word, re.compile(word.removeprefix(b"al") + rb"[^0.;\n]{0,40}0")) for word in sorted(_SUMS)
)
_PERCENT: Final = re.compile(r"(\d{1,3}(?:\.\d)?)\s?%")
_WHOLE: Final = 100.0

NUMBERS: Final[Mapping[str, int]] = {
    word: number
    for number, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 2
    )
}
_SPELLED: Final = f"(?a:{'|'.join(NUMBERS)})"
_COUNTED: Final = re.compile(
    rf"\b(?:(?:the|these|all|our) )?(?P<number>{_SPELLED}|\d{{1,2}}) "
    r"(?P<what>(?:[a-z-]{2,20} ){0,4}[a-z-]{2,20}s)"
    r"(?: (?:of|in|for) (?:this |the )?[a-z-]{2,20})?(?:: (?P<list>[^:.;\n?]{3,200})(?=[.;\n?]|$)"
    r"| \((?P<listed>[^()\n]{3,200})\))",
    re.IGNORECASE,
)
# What comes right before the list, and a number before that: each is quicker to look for than the whole.
_LONGEST_ANNOUNCED: Final = 32  # characters up to the colon
_LONGEST_COUNT: Final = 160  # characters from the number to the colon
_SEPARATOR: Final = re.compile(r",? and |, | or ")
_ROWS: Final = re.compile(
    rf"\b(?P<number>{_SPELLED}|\d{{1,6}}) (?:[a-z-]{{2,20}} ){{0,4}}[a-z-]{{2,20}}s (?:in|of|from) "
    r"(?P<file>[\w.-]{1,80}\.(?:csv|tsv))\b",
    re.IGNORECASE,
)

# Two dozen units: enough to see that the same thing is measured in two.
_QUANTITY: Final = re.compile(
    r"(?<![\w.,])(?P<number>\d{1,3}(?:,\d{3}){1,4}|\d{1,12}(?:\.\d{1,4})?)\s?"
    r"(?P<unit>mg|kg|g|t|ml|cl|l|mm|cm|km|m|ms|s|min|h|days?|weeks?|hours?|minutes?|seconds?|units?|euros?|EUR"
    r"|%|°C|MB|GB|kB)"
    r" (?P<after>(?:of |per )?[A-Za-z]{2,20}(?: [A-Za-z]{2,20}){1,2})"
)
_ANY_NUMBER: Final = re.compile(r"\d[\d,.]*")
_FEW_WORDS: Final = 4


def find_wrong_figures(baton: Baton, prose: Prose, rows: Mapping[str, int]) -> Iterator[Problem]:
    """Yield figures that contradict themselves or each other; `rows` has the number of rows of carried tables."""
    orders, signs = prose.orders, prose.order_signs
    if signs & _ANY_FIGURE:
        for sign, find in _CHECKS:
            if signs & sign:
                yield from chain.from_iterable(map(find, orders))
    if rows:
        for text in orders:
            yield from _wrong_rows(text, rows)
    carried = baton.by_kind.get(Claim)
    claims = [claim.what for claim in carried if claim.key is None] if carried else []
    if claims:
        yield from _two_figures(claims)
    if (signs | prose.told_signs) & MEASURES and (claims or Decision in baton.by_kind):
        yield from _two_quantities(orders, [*claims, *[decision.what for decision in baton.decisions]])


# A figure and a unit of `_QUANTITY` or of the checks in `quantities`.
_WITH_UNIT: Final = re.compile(
    rb"0[\s\x80-\xff]{0,4}(?:mg|kg|kilograms?|g|t|tons?|tonnes?|lbs?|oz|ml|cl|l|lit(?:er|re)s?|gal|gallons?|mm|cm|km"
    rb"|m|met(?:er|re)s?|mi|miles?|ft|feet|yd|ms|s|sec|seconds?|min|minutes?|h|hours?|days?|weeks?|months?|years?|units?"
    rb"|euros?|eur|usd|dollars?|gbp|chf|nok|sek|dkk|pln|czk|huf|jpy|cny|inr|%|percent|c|f|kb|mb|gb|tb|kib|mib|gib)(?![a-z])"
)
_MONEY_SIGNS: Final = ("\u20ac", "\u00a3", "\u00a5")  # and the dollar, which is in ASCII


_ANY_FIGURE: Final = DATES | SUMS | SHARES | COUNTS | HOURS | IMPOSSIBLE
_NUMBER_WORDS: Final = frozenset(word.encode() for word in NUMBERS)
SIGN_WORDS: Final = frozenset({b"from", b"hour", b"hours"}).union(_SUMS, _BOUNDED, MONTH_WORDS, _NUMBER_WORDS)


def find_signs(forms: TextForms) -> int:
    """Return the signs of the checks of figures that a text has."""
    words, figures = forms.words, forms.figures
    if figures is None:
        return _ANY_FIGURE | DIGITS | MEASURES
    signs = COUNTS if _may_have_count(figures, words) else 0
    if b"0" not in figures:
        return signs  # only a count can be spelled
    signs |= DIGITS
    if (b"-00-0" in figures or not words.isdisjoint(MONTH_WORDS)) and may_have_date(figures):
        signs |= DATES
    if not words.isdisjoint(_SUMS) and _may_have_sum(figures, words):
        signs |= SUMS
    if b"%" in figures:
        signs |= SHARES
    if b"from" in words and (b"hour" in words or b"hours" in words):
        signs |= HOURS
    if b"0:00" in figures or (
        not words.isdisjoint(_BOUNDED) and any(map(methodcaller("search", figures), _BOUNDED_FIGURES))
    ):
        signs |= IMPOSSIBLE
    lowered = forms.lowered
    of_money = "$" in lowered or (not lowered.isascii() and any(map(lowered.__contains__, _MONEY_SIGNS)))
    if of_money or _WITH_UNIT.search(figures):
        signs |= MEASURES
    return signs


def _may_have_sum(figures: bytes, words: AbstractSet[bytes]) -> bool:
    """Return whether a figure follows a word for a sum."""
    return any(word in words and pattern.search(figures) is not None for word, pattern in _SUM_AND_FIGURE)


def _may_have_count(figures: bytes, words: AbstractSet[bytes]) -> bool:
    """Return False if a text surely announces no number of things before a list."""
    spelled = words & _NUMBER_WORDS
    if not spelled and b"0" not in figures:
        return False
    for mark in (b": ", b" (") if b"(" in figures else (b": ",):
        place = figures.find(mark)
        while place >= 0:
            before = figures[place - _LONGEST_ANNOUNCED if place > _LONGEST_ANNOUNCED else 0 : place]
            # What counts things ends with the things, or with "of", "in" or "for" and what they belong to.
            if (before[-1:] == b"s" or b"s of " in before or b"s in " in before or b"s for " in before) and (
                spelled or figures.find(b"0", max(0, place - _LONGEST_COUNT), place) >= 0
            ):
                return True
            place = figures.find(mark, place + 1)
    return False


def _number(text: str) -> float:
    return float(text.replace(",", ""))


_EACH: Final = re.compile(r"\b(?:at|each|per|every|times|apiece|a head)\b|[×@]", re.IGNORECASE)


def _wrong_sums(text: str) -> Iterator[Problem]:
    if _EACH.search(text) is None:  # otherwise something is multiplied
        yield from _wrong_sums_of_money(text)
        yield from _wrong_sums_of_things(text)


def _wrong_sums_of_money(text: str) -> Iterator[Problem]:
    amounts: list[float] = []
    for found in _AMOUNT.finditer(text):
        if not (found["sign"] or found["unit"]):
            continue
        amount = _number(found["number"])
        if _TOTAL.search(text, max(0, found.start() - 24), found.start()) is None:
            amounts.append(amount)
            continue
        if len(amounts) > 1 and abs(sum(amounts) - amount) >= 0.01 and amount > max(amounts):  # noqa: PLR2004 - a cent
            yield a_doubt(
                "signal-corruption.sum",
                f"The amounts make {sum(amounts):,.2f} and not {amount:,.2f}.",
                f"Is the total {sum(amounts):,.2f} or {amount:,.2f}?",
            )
        return


def _wrong_sums_of_things(text: str) -> Iterator[Problem]:
    """Yield a total of the same unit as the figures before it, which do not add up to it."""
    by_unit: dict[str, list[float]] = {}
    for found in _COUNTABLE.finditer(text):
        unit, amount = found["unit"].lower().rstrip("s"), _number(found["number"])
        before = by_unit.setdefault(unit, [])
        if _TOTAL.search(text, max(0, found.start() - 24), found.start()) is None:
            before.append(amount)
        elif len(before) > 1 and amount > max(before) and abs(sum(before) - amount) >= 0.01:  # noqa: PLR2004 - rounding
            yield a_doubt(
                "signal-corruption.sum",
                f"The figures make {sum(before):g} and not {amount:g}.",
                f"Is the total {sum(before):g} or {amount:g}?",
            )
            return


def _impossible_values(text: str) -> Iterator[Problem]:
    """Yield a value that nothing can have, such as a latitude of 147."""
    if (found := _IMPOSSIBLE.search(text)) is not None:
        yield a_doubt(
            "signal-corruption.impossible",
            f"{quote(found.group())} cannot be.",
            f"What is meant by {quote(found.group())}?",
        )


def _wrong_hours(text: str) -> Iterator[Problem]:
    """Yield a duration that is not that of the hours beside it."""
    for found in _HOURS.finditer(text):
        begin, begun, end, ended, said = (int(one) for one in found.groups() if one is not None)
        minutes = (60 * (end - begin) + ended - begun) % _DAY
        if minutes != 60 * said:
            yield a_doubt(
                "signal-corruption.duration",
                f"{quote(found.group(), words=12)} is {minutes / 60:g} hours.",
                f"Are it {said} hours, or {minutes / 60:g}?",
            )


_DAY: Final = 24 * 60


def _wrong_shares(text: str) -> Iterator[Problem]:
    for found in _OF_ALL.finditer(text):
        if float(found[1]) > _WHOLE:
            yield a_doubt(
                "signal-corruption.shares",
                f"{quote(found.group())} is more than everything.",
                f"What is the right share, if not {found[1]} %?",
            )
    for found in chain(_SHARES.finditer(text), _WEIGHTS.finditer(text)):
        shares = [float(share) for share in _PERCENT.findall(found.group())]
        if sum(shares) > _WHOLE + 1:
            yield a_doubt(
                "signal-corruption.shares",
                f"The shares in {quote(found.group())} make {sum(shares):g} %.",
                f"Which share is wrong in {quote(found.group(), words=8)}?",
            )


def _wrong_counts(text: str) -> Iterator[Problem]:
    for found in _COUNTED.finditer(text):
        said = NUMBERS.get(found["number"].lower()) or int(found["number"])
        if found["what"].lower().split()[0].rstrip("s") in _MEASURES:
            continue  # "50 minutes about fractions: 10 minutes practice, …" counts no things
        if found["list"] is None and not found.group().lower().startswith(_DEFINITE):
            continue  # "6 laptops (ThinkPad, 32 GB)" describes them
        listed = [one for one in _SEPARATOR.split(found["list"] or found["listed"]) if one.strip()]
        if 1 < len(listed) != said and max(len(one.split()) for one in listed) <= _FEW_WORDS:
            yield a_doubt(
                "signal-corruption.count",
                f"{quote(found.group())} announces {said} and lists {len(listed)}.",
                f"Are there {said} or {len(listed)} {quote(found['what'])}?",
            )


_MEASURES: Final = words_of(
    "second minute hour day week month year euro dollar pound percent point metre meter gram kilo litre liter"
)
_DEFINITE: Final = ("the ", "these ", "all ", "our ")


def _wrong_rows(text: str, rows: Mapping[str, int]) -> Iterator[Problem]:
    for found in _ROWS.finditer(text):
        said = NUMBERS.get(found["number"].lower()) or int(found["number"])
        there = rows.get(found["file"])
        if there is not None and there != said:
            yield a_doubt(
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
        if "#" in words and _of_one_thing(other, claim):
            yield a_doubt(
                "signal-corruption.two-figures",
                f"Two claims give two figures: {quote(other, words=12)} and {quote(claim, words=12)}.",
                f"Which is right: {quote(other, words=9)} or {quote(claim, words=9)}?",
            )


def _of_one_thing(one: str, other: str) -> bool:
    """Return whether claims with the same words differ in a figure, and not in the number of their subject."""
    pairs = [
        (found.start(), found.group().strip(".,"), same.group().strip(".,"))
        for found, same in zip(_ANY_NUMBER.finditer(one), _ANY_NUMBER.finditer(other), strict=False)
    ]
    differing = [place for place, figure, elsewhere in pairs if figure != elsewhere]
    # "Shipment 77120 left Koper": a number among the first words says which one is meant.
    return bool(differing) and all(len(one[:place].split()) > _SUBJECT for place in differing)


_SUBJECT: Final = 2  # words before the number of a thing


def _two_quantities(orders: Sequence[str], claims: Sequence[str]) -> Iterator[Problem]:
    """Yield a quantity of the task that a claim or a decision gives in another unit or number."""
    said = [(found, text) for text in (*orders, *claims) for found in _QUANTITY.finditer(text)]
    for (one, _), (other, _) in combinations(said[:_FEW_QUANTITIES], 2):
        same = one["after"].casefold().split()[:2] == other["after"].casefold().split()[:2]
        if same and (one["number"], one["unit"]) != (other["number"], other["unit"]):
            yield a_doubt(
                "signal-corruption.two-quantities",
                f"{quote(one.group())} and {quote(other.group())} do not agree.",
                f"Is it {quote(one.group(), words=6)} or {quote(other.group(), words=6)}?",
            )


_FEW_QUANTITIES: Final = 40  # compared with each other

# Each check of one text, and its sign.
_CHECKS: Final = (
    (DATES, find_wrong_dates),
    (SUMS, _wrong_sums),
    (SHARES, _wrong_shares),
    (COUNTS, _wrong_counts),
    (HOURS, _wrong_hours),
    (IMPOSSIBLE, _impossible_values),
)
