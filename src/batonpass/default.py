"""The relay of this directory, for short programs that need only one: `batonpass.start(...)` and nothing else."""

import threading
from collections.abc import Iterable, Sequence

from batonpass.config import find_settings
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.transfer.offer_request import GivenItem
from batonpass.model.base.ids import SessionId
from batonpass.model.base.kinds import Mode
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.relay import Relay

_LOCK = threading.Lock()
_RELAYS: dict[str, Relay] = {}


def default_relay(*, create: bool = True) -> Relay:
    """Return the relay of the ledger that the settings name. Each ledger is opened once per process.

    Raises `StoreUnavailableError` if there is no ledger and `create` is False.
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
    items: Iterable[GivenItem] = (),
    continues: str | None = None,
    series: str | None = None,
    session: SessionId | None = None,
    mode: Mode | str | None = None,
    may: Sequence[str] = (),
    grant: GrantRequest | None = None,
    key: str | None = None,
) -> LiveRun:
    """Start a root run in the ledger of this directory. `intent` is the principal's wish, in their own words.

    `items` are further things that they said, such as constraints and exclusions. `may` and `grant` limit the run. The
    same `key` is the same run. The parameters are those of `Relay.start`.
    """
    return default_relay().start(
        intent,
        by=by,
        agent=agent,
        items=items,
        continues=continues,
        series=series,
        session=session,
        mode=mode,
        may=may,
        grant=grant,
        key=key,
    )
