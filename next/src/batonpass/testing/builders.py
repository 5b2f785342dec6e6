"""Relays, runs and attempts, with only what matters said."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from batonpass.api.acts import Caller
from batonpass.api.handles import Relay, Run
from batonpass.api.port import LocalPort
from batonpass.place import MEMORY
from batonpass.system import System
from batonpass.testing.faults import Faults
from batonpass.testing.observed import port_of


def a_relay(
    ledger: str | Path = MEMORY,
    *,
    system: System | None = None,
    faults: Faults | None = None,
    work_tree: Path | None = None,
    caller: Caller | None = None,
) -> Relay:
    """Return a relay: of a ledger that is gone when it is closed, or of the one that is named.

    Faults befall what is written from now on: the commits of opening a ledger are not counted.
    """
    relay = Relay.open(ledger, system=system, work_tree=work_tree)
    port = port_of(relay)
    port.caller = caller or port.caller
    if faults is not None:
        recorder = port.context.recorder
        port.context = replace(port.context, recorder=replace(recorder, store=faults.wrap(recorder.store)))
    return relay


def for_caller(relay: Relay, caller: Caller) -> Relay:
    """Return a relay for another caller in the same process, as a server has one for each token."""
    return Relay(LocalPort(port_of(relay).context, caller))


def a_run(
    relay: Relay,
    *,
    intent: str = "Round totals half-even",
    may: Sequence[str] | None = None,
    **others: Any,  # noqa: ANN401 - as `start` takes them
) -> Run:
    """Return a root run of user:ana. With `may` it is enforced, and may delegate the same."""
    return relay.start(intent, by="user:ana", may=may, may_delegate=others.pop("may_delegate", may), **others)


def an_attempt(
    relay: Relay,
    *,
    to: str = "editor",
    task: str = "Fix rounding",
    may: Sequence[str] | None = None,
    parent: Run | None = None,
) -> Run:
    """Return an attempt at a handoff of a new root run, or of the one that is given."""
    root = a_run(relay, may=may) if parent is None else parent
    return root.hand_off(to, task, may=may).accept()
