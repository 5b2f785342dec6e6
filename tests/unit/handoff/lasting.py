"""What the tests of sessions share: a root that decided something, and what a run begins with."""

from hashlib import sha256
from typing import Final

from batonpass.handoff.live.faces import LiveRun
from batonpass.model.baton.items import Constraint, Decision, ItemValue
from batonpass.model.baton.session import SessionState
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA

OLD: Final = "0.21"
NEW: Final = "0.23"
THREE: Final = Constraint(key="threshold", operator="<=", value="3", unit="sigma")
FOUR: Final = Constraint(key="threshold", operator="<=", value="4", unit="sigma")


def digest(text: str) -> str:
    """Return the digest that a condition names."""
    return sha256(text.encode()).hexdigest()


def values(run: LiveRun) -> list[ItemValue | None]:
    """Return what a run knows."""
    return [item.value for item in run.notes]


def decided(relay: Relay, *conditions: str) -> LiveRun:
    """Return a root that decided something under conditions."""
    lead = relay.start("begin", by=ANA, items=[THREE])
    lead.record(Decision("use the old rates", why="they were agreed", conditions=conditions))
    return lead


def reasons(state: SessionState) -> list[tuple[str, ...]]:
    """Return why decisions are open again."""
    return [one.reasons for one in state.revisit]
