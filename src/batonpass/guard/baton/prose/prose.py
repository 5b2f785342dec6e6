"""The words of a baton as the checks of prose read them: its texts, and the signs that each of them has.

Most texts have none of the words without which a check can find nothing. So each text is looked through once for such
signs, and only where a sign is there are its patterns tried. An item that travels over many hops, such as a decision,
is looked through once in a process.
"""

from collections.abc import Mapping
from typing import Final

from batonpass.guard.baton.problem import Problem, problem_of
from batonpass.model.base.value import Value


class Prose(Value, frozen=True):
    """The texts of a baton, and their signs: of each, and of those that belong together."""

    orders: list[str]  # the task, its criteria and its rationale
    told: tuple[str, ...]  # the texts of the items
    ordered: str  # the orders, joined by line breaks
    signs: Mapping[str, int]
    order_signs: int
    told_signs: int


def a_doubt(check: str, about: str, question: str) -> Problem:
    """Return a problem that words seem to have. They can be read in many ways: it is asked about and never blocks."""
    return problem_of(check, about, question, blocking=False, doubtful=True)


def words_of(*lines: str) -> frozenset[str]:
    """Return the words in lines as a set."""
    return frozenset(word for line in lines for word in line.split())


def sentence_at(text: str, place: int) -> str:
    """Return the sentence around a place of a text; of a very long sentence, the part near the place."""
    first, last = max(0, place - _LONGEST), min(len(text), place + _LONGEST)
    begin = max(text.rfind(mark, first, place) for mark in _ENDS) + 1
    ends = [end for mark in _ENDS if (end := text.find(mark, place, last)) >= 0]
    return text[begin or first : min(ends, default=last)]


_ENDS: Final = (". ", "; ", "\n")
_LONGEST: Final = 300  # characters on either side, so that many places in one sentence cost no more than their number
