"""The current run, so that a program does not have to pass its run through all of its code.

A run is current from when it is entered as a context until it is left. A task of asyncio inherits it from the task that
starts it, and so does a function in `asyncio.to_thread`. Any other thread begins without one: if we guessed its run, we
might record its calls under the name of another agent.
"""

from contextvars import ContextVar
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.handoff.live.run_facts import RunFacts

_CURRENT: Final[ContextVar[RunFacts | None]] = ContextVar("batonpass_run", default=None)


class RunScope:
    """A context in which a run is the current one. It can be entered once."""

    __slots__ = ("_outer", "_run")

    def __init__(self, run: RunFacts) -> None:
        self._run = run
        self._outer: RunFacts | None = None

    def __enter__(self) -> None:
        self._outer = _CURRENT.get()
        _CURRENT.set(self._run)

    def __exit__(self, *_: object) -> None:
        _CURRENT.set(self._outer)


def find_current() -> RunFacts | None:
    """Return the current run; None if there is none."""
    return _CURRENT.get()


def get_current() -> RunFacts:
    """Return the current run. Raises `InvalidValueError` if there is none."""
    found = _CURRENT.get()
    if found is None:
        raise InvalidValueError(
            "run",
            "there is none here: enter one as a context, as in `with start(…) as run:`; a thread is told for which it "
            "works by contextvars.copy_context().run",
        )
    return found
