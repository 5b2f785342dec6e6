"""The text that an approver is shown: the same on every screen, bounded, and safe whoever wrote its parts.

Its digest is signed with the ruling, so it does not depend on the width of a screen or the time of day.
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
    """One labelled entry; its texts are ours or somebody else's."""

    label: str
    texts: Sequence[str]


def decision_sheet(title: str, facts: Sequence[SheetFact], footer: str) -> str:
    """Return the facts to decide on as lines. Nothing in them is hidden, or acts on the terminal."""
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
