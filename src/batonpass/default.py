"""The relay of this directory: what the shortest programs use."""

import threading
from collections.abc import Iterable

from batonpass.config import find_settings
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.baton.items import Constraint, Exclusion
from batonpass.relay import Relay

_LOCK = threading.Lock()
_RELAYS: dict[str, Relay] = {}


def default_relay(*, create: bool = True) -> Relay:
    """Return the relay on the ledger that the settings name, opened once in this process.

    Raises `StoreUnavailableError` without `create` if there is none.
    """
    settings = find_settings()
    with _LOCK:
        relay = _RELAYS.get(settings.ledger)
        if relay is None:
            relay = _RELAYS[settings.ledger] = Relay.open(
                settings.ledger, home=settings.home, create=create, policy=settings.policy
            )
        return relay


def start(
    intent: str,
    *,
    by: str,
    agent: str = "lead",
    constraints: Iterable[Constraint | str] = (),
    exclusions: Iterable[Exclusion | str] = (),
    continues: str | None = None,
    series: str | None = None,
) -> LiveRun:
    """Begin a root run in the ledger of this directory, for what a human wants, in their own words."""
    return default_relay().start(
        intent,
        by=by,
        agent=agent,
        constraints=constraints,
        exclusions=exclusions,
        continues=continues,
        series=series,
    )
