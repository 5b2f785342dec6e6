"""The current run, so that a program does not have to pass its run through all of its code.

A run is current from when it is entered as a context until it is left. A task of asyncio inherits it from the task that
starts it, a thread from where it is started, and a function in a `ThreadPoolExecutor` from where it is submitted. We
never guess: work that a program passes to a thread in another way, such as a queue, is done for the run for which that
thread was started. Once the run has ended, nobody works for it.
"""

from contextvars import ContextVar
from typing import Final

from batonpass.errors import InvalidValueError, StreamClosedError
from batonpass.handoff.live.run_facts import RunFacts
from batonpass.handoff.live.thread_inheritance import ThreadInheritance

_CURRENT: Final[ContextVar[RunFacts | None]] = ContextVar("batonpass_run", default=None)
_THREADS: Final = ThreadInheritance(_CURRENT)


class RunScope:
    """A context in which a run is the current one. It can be entered once."""

    __slots__ = ("_outer", "_run")

    def __init__(self, run: RunFacts) -> None:
        self._run = run
        self._outer: RunFacts | None = None

    def __enter__(self) -> None:
        if not _THREADS.is_decided:
            _THREADS.begin()
        self._outer = _CURRENT.get()
        _CURRENT.set(self._run)

    def __exit__(self, *_: object) -> None:
        _CURRENT.set(self._outer)


def leave_threads_alone() -> None:
    """Let threads of this process inherit no current run from now on."""
    _THREADS.stop()


def find_current() -> RunFacts | None:
    """Return the current run; None if there is none. One that has ended refuses every act."""
    return _CURRENT.get()


def get_current() -> RunFacts:
    """Return the current run.

    Raises `InvalidValueError` if there is none, and `StreamClosedError` if it has ended: a thread or a task may outlive
    the run that it was started for.
    """
    found = _CURRENT.get()
    if found is None:
        raise InvalidValueError(
            "run",
            "there is none here: enter one as a context, as in `with start(…) as run:`; a thread inherits it only if "
            "it is started inside, and contextvars.copy_context().run takes it anywhere else",
        )
    if found._closed:  # noqa: SLF001 - no part of the public face: whoever holds a run knows whether it closed it
        raise StreamClosedError(found.id)
    return found
