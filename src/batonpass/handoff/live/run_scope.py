"""Which run code works for, so that nobody has to pass runs through their code.

A run is current from when it is entered as a context until it is left. Tasks of asyncio inherit it from the task that
starts them, and so does what they do by `asyncio.to_thread`. Any other thread begins with nothing, as threads do: to
guess for which run it works would be to record under somebody else's name.
"""

from contextvars import ContextVar
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.handoff.live.run_facts import RunFacts

_CURRENT: Final[ContextVar[RunFacts | None]] = ContextVar("batonpass_run", default=None)


class RunScope:
    """A context in which a run is the current one, to be entered once."""

    __slots__ = ("_outer", "_run")

    def __init__(self, run: RunFacts) -> None:
        self._run = run
        self._outer: RunFacts | None = None

    def __enter__(self) -> None:
        self._outer = _CURRENT.get()
        _CURRENT.set(self._run)

    def __exit__(self, *_: object) -> None:
        _CURRENT.set(self._outer)


def get_current() -> RunFacts:
    """Return the run that this code works for. Raises `InvalidValueError` if there is none."""
    found = _CURRENT.get()
    if found is None:
        raise InvalidValueError(
            "run",
            "there is none here: enter one as a context, as in `with start(…) as run:`; a thread is told for which it "
            "works by contextvars.copy_context().run",
        )
    return found
