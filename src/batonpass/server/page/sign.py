"""States as the page shows them: each has a shape, a tone and a word of its own, so colour is never the only sign."""

from typing import Final

from msgspec import Struct


class StateSign(Struct, frozen=True):
    """How one state looks."""

    icon: str
    tone: str  # live, warn, bad, good or nothing
    word: str


_SIGNS: Final = {
    "offered": StateSign("waiting", "", "waiting to be taken"),
    "ready": StateSign("waiting", "", "waiting for a worker"),
    "claimed": StateSign("waiting", "", "claimed by a worker"),
    "running": StateSign("running", "live", "running"),
    "open": StateSign("running", "live", "open"),
    "held": StateSign("held", "warn", "held"),
    "asked": StateSign("asked", "warn", "asked"),
    "in doubt": StateSign("doubt", "warn", "in doubt"),
    "completed": StateSign("completed", "", "completed"),
    "verified": StateSign("verified", "good", "verified"),
    "failed": StateSign("failed", "bad", "failed"),
    "refuted": StateSign("failed", "bad", "refuted"),
    "denied": StateSign("denied", "", "denied"),
    "declined": StateSign("denied", "", "declined"),
    "cancelled": StateSign("denied", "", "cancelled"),
    "lapsed": StateSign("lapsed", "", "lapsed"),
    "suspended": StateSign("held", "", "stopped before a call"),
    "expired": StateSign("lapsed", "", "expired"),
    "unverified": StateSign("waiting", "", "unverified"),
}
# In the order in which people look for them.
ORDER: Final = (
    "held",
    "asked",
    "in doubt",
    "failed",
    "refuted",
    "running",
    "open",
    "offered",
    "ready",
    "claimed",
    "lapsed",
    "suspended",
    "expired",
    "denied",
    "declined",
    "cancelled",
    "completed",
    "verified",
)
# Never hidden in a group, nor folded away.
SHOWN_ALWAYS: Final = frozenset(ORDER[:10])


def sign_of(state: object) -> StateSign:
    """Return how a state looks."""
    return _SIGNS.get(str(state), StateSign("waiting", "", str(state)))


def all_signs() -> dict[str, StateSign]:
    """Return every state with its sign, for the page that explains them."""
    return dict(_SIGNS)
