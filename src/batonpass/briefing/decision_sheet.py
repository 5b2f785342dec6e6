"""What somebody who has to decide is shown: the same text on every screen, bounded, and harmless whoever wrote it.

Its digest is signed with the decision, so nothing here depends on how wide a screen is, or on the time of day.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from batonpass.model.base.visible import visible

_LABEL: Final = 10
_LINES: Final = 20  # of one text
_COLUMNS: Final = 400  # of one line
_ROWS: Final = 10  # of one list


class SheetFact(Struct, frozen=True, kw_only=True):
    """Something to be shown: under which label, and somebody's own words or ours."""

    label: str
    texts: Sequence[str]


def decision_sheet(title: str, facts: Sequence[SheetFact], footer: str) -> str:
    """Return what is to be decided as lines of text, of which a screen obeys and hides nothing."""
    lines = [visible(title)]
    for fact in facts:
        lines += _rows(fact)
    return "\n".join([*lines, f"  {visible(footer)}"]) + "\n"


def _rows(fact: SheetFact) -> Iterator[str]:
    label = fact.label
    for text in fact.texts[:_ROWS]:
        for line in _lines(text):
            yield f"  {label:<{_LABEL}}{line}"
            label = ""
    if (more := len(fact.texts) - _ROWS) > 0:
        yield f"  {'':<{_LABEL}}… and {more:,} more, which are not shown"


def _lines(text: str) -> Iterator[str]:
    given = text.removesuffix("\n").split("\n")
    for line in given[:_LINES]:
        shown = visible(line)
        yield shown if len(shown) <= _COLUMNS else f"{shown[:_COLUMNS]}… {len(shown) - _COLUMNS:,} characters more"
    if (more := len(given) - _LINES) > 0:
        yield f"… {more:,} lines more, which are not shown"
