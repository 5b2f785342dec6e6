"""Which run code works for, so that nobody has to pass runs through their code.

A run is current from when it is entered as a context until it is left. Tasks of asyncio inherit it from the task that
starts them. A new thread begins with nothing, as threads do: it is given the innermost run that was entered in this
process, as long as that is beyond doubt.
"""

import threading
from contextvars import ContextVar
from itertools import pairwise
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.handoff.live.run_facts import RunFacts

_CURRENT: Final[ContextVar[RunFacts | None]] = ContextVar("batonpass_run", default=None)
_ENTERED: Final[list[RunFacts]] = []  # by whichever thread, and not left yet
_LOCK: Final = threading.Lock()


class RunScope:
    """A context in which a run is the current one, to be entered once."""

    __slots__ = ("_outer", "_run")

    def __init__(self, run: RunFacts) -> None:
        self._run = run
        self._outer: RunFacts | None = None

    def __enter__(self) -> None:
        with _LOCK:
            _ENTERED.append(self._run)
        self.show()

    def __exit__(self, *_: object) -> None:
        with _LOCK:
            # Found by identity, and from the end: it may have been entered twice, or never.
            for place in range(len(_ENTERED) - 1, -1, -1):
                if _ENTERED[place] is self._run:
                    del _ENTERED[place]
                    break
        self.hide()

    def show(self) -> None:
        """Make the run current in this context alone: what another thread has entered is current there."""
        self._outer = _CURRENT.get()
        _CURRENT.set(self._run)

    def hide(self) -> None:
        """Make the run current in this context that was before."""
        _CURRENT.set(self._outer)


def get_current() -> RunFacts:
    """Return the run that this code works for. Raises `InvalidValueError` if there is none, or several may be meant."""
    found = _CURRENT.get() or _find_entered()
    if found is None:
        raise InvalidValueError("run", "there is none here: enter one as a context, as in `with start(…) as run:`")
    return found


def _find_entered() -> RunFacts | None:
    """Return the innermost run that was entered in this process; None if there is none. Raises `InvalidValueError`."""
    with _LOCK:
        entered = tuple(_ENTERED)
    if all(inner.parent == outer.id for outer, inner in pairwise(entered)):
        return entered[-1] if entered else None
    # Several are at work side by side: to choose one would be to record under somebody else's name.
    raise InvalidValueError(
        "run",
        "several are worked on at once, and this thread was not told for which: start it with "
        "contextvars.copy_context().run, or pass the run",
    )
