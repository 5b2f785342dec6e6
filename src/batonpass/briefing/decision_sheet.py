"""The text that an approver is shown: the same on every screen, uncut, and safe with words of anybody.

Its digest is signed with the ruling, so it does not depend on the width of a screen or the time of day.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from batonpass.model.base.visible import visible

LABEL_WIDTH: Final = 10


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
    for text in fact.texts:
        # All of it: an attacker would hide words in the part that is cut off.
        for line in text.removesuffix("\n").split("\n"):
            yield f"  {label:<{LABEL_WIDTH}}{visible(line)}"
            label = ""
