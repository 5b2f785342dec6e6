"""The words of a baton as the checks of prose read them: its texts, and all of them at once for a quick look.

Most batons have none of the words without which a check can find nothing. So a check first looks for such a sign, a
literal piece of text, in everything at once, which costs a hundredth of a pattern and no call. Only where a sign is
there are its patterns tried, text by text. A sign that is there too often costs time; one that is missing hides a
problem, so every alternative of a pattern must contain a sign of its check.
"""

from typing import Final

from batonpass.guard.baton.problem import Problem, Whom
from batonpass.guard.baton.prose.signs import mark_figures, split_words
from batonpass.guard.baton.referential_drift import texts_of
from batonpass.model.base.kinds import ErrorType
from batonpass.model.base.value import Value
from batonpass.model.baton.baton import Baton


class Prose(Value, frozen=True):
    """The texts of a baton, joined by line breaks too; `lowered` ones have no capitals."""

    orders: list[str]  # the task, its criteria and its rationale
    told: list[str]  # the texts of the items
    ordered: str
    lowered_orders: str
    lowered: str  # everything
    lowered_told: str
    # For signs: the words of the orders; the figures of the orders, of the items, and of both.
    words: frozenset[bytes]
    figures: bytes | None
    told_figures: bytes | None
    all_figures: bytes | None


def read_prose(baton: Baton) -> Prose:
    """Return the words of a baton."""
    orders = [baton.task, *baton.brief.criteria]
    if baton.brief.rationale is not None:
        orders.append(baton.brief.rationale)
    told = texts_of(baton)
    ordered = "\n".join(orders)
    lowered_orders = ordered.lower()
    lowered = "\n".join((lowered_orders, *told)).lower() if told else lowered_orders
    if not lowered.isascii():
        # Patterns that ignore capitals take these for an i and an s as well.
        lowered_orders = lowered_orders.replace("ı", "i").replace("i\u0307", "i").replace("ſ", "s")  # noqa: RUF001
        lowered = lowered.replace("ı", "i").replace("i\u0307", "i").replace("ſ", "s")  # noqa: RUF001 - meant
    encoded, first = lowered.encode(), len(lowered_orders.encode())
    figures = mark_figures(lowered)
    return Prose(
        orders=orders,
        told=told,
        ordered=ordered,
        lowered_orders=lowered_orders,
        lowered=lowered,
        lowered_told=lowered[len(lowered_orders) :],
        words=split_words(encoded[:first]),
        figures=None if figures is None else figures[:first],
        told_figures=None if figures is None else figures[first:],
        all_figures=figures,
    )


def a_doubt(error: ErrorType, check: str, about: str, question: str) -> Problem:
    """Return a problem that words seem to have. They can be read in many ways: it is asked about and never blocks."""
    return Problem(
        error=error,
        check=check,
        about=about,
        blocking=False,
        doubtful=True,
        question=question,
        whom=Whom.PRODUCER,
    )


def words_of(*lines: str) -> frozenset[str]:
    """Return the words in lines as a set."""
    return frozenset(word for line in lines for word in line.split())


def sentence_at(text: str, place: int) -> str:
    """Return the sentence around a place of a text, or what of a very long one is near it."""
    first, last = max(0, place - _LONGEST), min(len(text), place + _LONGEST)
    begin = max(text.rfind(mark, first, place) for mark in _ENDS) + 1
    ends = [end for mark in _ENDS if (end := text.find(mark, place, last)) >= 0]
    return text[begin or first : min(ends, default=last)]


_ENDS: Final = (". ", "; ", "\n")
_LONGEST: Final = 300  # characters on either side, so that many places in one sentence cost no more than their number
