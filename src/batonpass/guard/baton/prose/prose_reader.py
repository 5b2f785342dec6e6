"""Reads a baton: its texts, and for each of them the signs of all checks."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from batonpass.guard.baton.prose import announcements, contradictions, figures, quantities, references, sources
from batonpass.guard.baton.prose.prose import Prose
from batonpass.guard.baton.prose.signs import ZEROS, TextForms, read_forms
from batonpass.guard.baton.text_memory import LONGEST_REMEMBERED, MOST_REMEMBERED
from batonpass.model.baton.baton import Baton

_FINDERS: Final[tuple[Callable[[TextForms], int], ...]] = (
    announcements.find_signs,
    contradictions.find_signs,
    figures.find_signs,
    quantities.find_signs,
    references.find_signs,
    sources.find_signs,
)
_TOLD_FINDERS: Final = (*_FINDERS, contradictions.find_told_signs, sources.find_told_signs)
_WORDS: Final = frozenset().union(
    announcements.SIGN_WORDS,
    contradictions.SIGN_WORDS,
    figures.SIGN_WORDS,
    quantities.SIGN_WORDS,
    references.SIGN_WORDS,
    sources.SIGN_WORDS,
)


def find_signs(text: str) -> int:
    """Return the signs that a text of the orders has."""
    forms = read_forms(text, _WORDS)
    signs = 0
    for find in _FINDERS:
        signs |= find(forms)
    return signs


def find_told_signs(text: str) -> int:
    """Return the signs that a text of an item has."""
    forms = read_forms(text, _WORDS)
    signs = 0
    for find in _TOLD_FINDERS:
        signs |= find(forms)
    return signs


_recall_signs: Final = lru_cache(maxsize=MOST_REMEMBERED)(find_signs)
_recall_told_signs: Final = lru_cache(maxsize=MOST_REMEMBERED)(find_told_signs)


def read_prose(baton: Baton) -> Prose:
    """Return the words of a baton, and their signs."""
    brief = baton.brief
    orders = [baton.task, *brief.criteria]
    if brief.rationale is not None:
        orders.append(brief.rationale)
    told = baton.told
    signs: dict[str, int] = {}
    order_signs = told_signs = 0
    for text in orders:
        # Which digits a figure has makes no difference to a sign. So tasks that differ only in their numbers, as those
        # of a lead that hands out one invoice after the other, are looked through once.
        shape = text.encode().translate(ZEROS).decode()
        signs[text] = found = _recall_signs(shape) if len(text) <= LONGEST_REMEMBERED else find_signs(shape)
        order_signs |= found
    for text in told:
        found = _recall_told_signs(text) if len(text) <= LONGEST_REMEMBERED else find_told_signs(text)
        signs[text] = found
        told_signs |= found
    return Prose(orders, told, "\n".join(orders), signs, order_signs, told_signs)
