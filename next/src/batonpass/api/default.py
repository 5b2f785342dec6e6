"""The default relay: the ledger of the folder that the program works in, opened at its first use."""

import atexit
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from batonpass.api.handles import Relay, Run
from batonpass.api.opening import open_port
from batonpass.api.port import Port
from batonpass.api.run_base import CURRENT_RUN
from batonpass.api.tools import CURRENT_CALL, CurrentCall
from batonpass.model.grants import Grant
from batonpass.model.items import AnyItem
from batonpass.place import find_place

if TYPE_CHECKING:
    from batonpass.reports.blame import Blame

_PORTS: Final[dict[tuple[str, str, str, int], Port]] = {}
_LOCK: Final = threading.Lock()


def default_relay() -> Relay:
    """Return the relay of this folder."""
    return Relay(default_port())


def default_port() -> Port:
    """Return the port to the ledger of this folder. After a fork the child has one of its own."""
    names = ("BATONPASS_LEDGER", "BATONPASS_STATE_DIR")
    ledger, state = (os.environ.get(name, "") for name in names)
    key = (str(Path.cwd()), ledger, state, os.getpid())
    with _LOCK:
        port = _PORTS.get(key)
        if port is None:
            port = _PORTS[key] = open_port()
    return port


@atexit.register
def _close_ports() -> None:
    for (*_, process), port in _PORTS.items():
        if process == os.getpid():
            port.close()
    _PORTS.clear()


def start(
    intent: str,
    *,
    by: str,
    agent: str = "lead",
    may: Sequence[str] | None = None,
    may_delegate: Sequence[str] | None = None,
    grant: Grant | None = None,
    items: Sequence[AnyItem] = (),
    key: str | None = None,
) -> Run:
    """Begin a run for a principal, on the ledger of this folder. With a grant it is enforced, else observed."""
    return default_relay().start(
        intent, by=by, agent=agent, may=may, may_delegate=may_delegate, grant=grant, items=items, key=key
    )


def blame(path: str | Path, line: int | None = None, *, relay: Relay | None = None) -> "Blame":
    """Return who wrote a file, or one line of it, by the ledger of this folder or of `relay`. Printed, it is words."""
    if relay is None:
        find_place(create=False)  # asking begins no record
        relay = default_relay()
    return relay.blame(path, line)


def current_run() -> Run | None:
    """Return the run that this code works for: the innermost `with`. A new thread needs `copy_context().run`.

    Of an `AsyncRun` this is another handle, which blocks; `batonpass.aio` has the one that is awaited.
    """
    run = CURRENT_RUN.get()
    if run is None or isinstance(run, Run):
        return run
    return Run(port_here(run), run.opened, run.progress)


def port_here(handle: Any) -> Port:  # noqa: ANN401 - any handle, of either face
    """Return the synchronous port behind a handle."""
    port: Port = getattr(handle._port, "port", handle._port)  # noqa: SLF001 - of our own handles
    return port


def current_call() -> CurrentCall | None:
    """Return the call that this code is made by, with the key by which an outside system may do it once."""
    return CURRENT_CALL.get()
