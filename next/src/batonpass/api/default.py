"""The default relay: the ledger of the folder that the program works in, opened at its first use."""

import atexit
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from batonpass.api.handles import CURRENT_RUN, Relay, Run
from batonpass.api.tools import CURRENT_CALL, CurrentCall
from batonpass.model.grants import Grant
from batonpass.model.items import AnyItem

_RELAYS: Final[dict[tuple[str, str, str, int], Relay]] = {}
_LOCK: Final = threading.Lock()


def default_relay() -> Relay:
    """Return the relay of this folder. After a fork the child has one of its own."""
    names = ("BATONPASS_LEDGER", "BATONPASS_STATE_DIR")
    ledger, state = (os.environ.get(name, "") for name in names)
    key = (str(Path.cwd()), ledger, state, os.getpid())
    with _LOCK:
        relay = _RELAYS.get(key)
        if relay is None:
            relay = _RELAYS[key] = Relay.open()
    return relay


@atexit.register
def _close_relays() -> None:
    for (*_, process), relay in _RELAYS.items():
        if process == os.getpid():
            relay.close()
    _RELAYS.clear()


def start(
    intent: str,
    *,
    by: str,
    agent: str = "lead",
    may: Sequence[str] = (),
    may_delegate: Sequence[str] = (),
    grant: Grant | None = None,
    items: Sequence[AnyItem] = (),
    key: str | None = None,
) -> Run:
    """Begin a run for a principal, on the ledger of this folder. With a grant it is enforced, else observed."""
    return default_relay().start(
        intent, by=by, agent=agent, may=may, may_delegate=may_delegate, grant=grant, items=items, key=key
    )


def current_run() -> Run | None:
    """Return the run that this code works for: the innermost `with`. A new thread needs `copy_context().run`."""
    run: Run | None = CURRENT_RUN.get()
    return run


def current_call() -> CurrentCall | None:
    """Return the call that this code is made by, with the key by which an outside system may do it once."""
    return CURRENT_CALL.get()
