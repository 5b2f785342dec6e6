"""Calls that were made already when they were judged: flags of their requests, which the verifier knows as well."""

from collections.abc import Iterable
from typing import Final

UNASKED: Final = "made.unasked"  # nobody was asked before
REFUSED: Final = "made.refused"  # it was refused or held, and made all the same
OTHERWISE: Final = "made.otherwise"  # with other arguments than were judged
BACKGROUND: Final = "made.background"  # the rest of a call that had returned
HOW: Final = (UNASKED, REFUSED, OTHERWISE, BACKGROUND)


def is_told_outside(flags: Iterable[str], rules: Iterable[str]) -> bool:
    """Return whether a request says itself that it was made already, and that one of these rules stood against it.

    Such a receipt claims no authority: whoever could not stop a call tells it as it was.
    """
    told = set(flags)
    return not told.isdisjoint(HOW) and any(f"would_deny.{rule}" in told for rule in rules)
