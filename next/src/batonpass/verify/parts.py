"""Which contents each kind of receipt has. `docs/spec/content.md` has the same table with their meaning.

A part beyond these is refused: words in a place that nothing reads would be signed, and found by nobody.
"""

from typing import Final

from msgspec import Struct


class Parts(Struct, frozen=True):
    """The contents that a receipt must have, and those that it may have beside them."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


def _parts(required: str = "", optional: str = "") -> Parts:
    return Parts(frozenset(required.split()), frozenset(optional.split()))


PARTS: Final[dict[str, Parts]] = {
    "grant.revoked": _parts(optional="reason"),
    "handoff.accepted": _parts(),
    "handoff.cancelled": _parts(),
    "handoff.completed": _parts(optional="report"),
    "handoff.failed": _parts("error", optional="report"),
    "handoff.initiated": _parts("baton task", optional="terms"),
    "handoff.retried": _parts(optional="reason"),
    "key.enrolled.relay": _parts("secret"),
    "run.closed": _parts(optional="error report"),
    "run.recorded.gap": _parts("gaps"),
    "run.recorded.items": _parts("items"),
    "run.rekeyed": _parts(),
    "run.started": _parts("intent secret", optional="items terms"),
    "tool.completed": _parts(optional="hunks result"),
    "tool.denied": _parts("action arguments reason target"),
    "tool.failed": _parts("error", optional="hunks"),
    "tool.late_result": _parts(optional="error hunks result"),
    "tool.requested": _parts("action arguments target"),
    "tool.settled": _parts(optional="reason"),
}
