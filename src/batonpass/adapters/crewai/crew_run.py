"""One kickoff of a crew: which task is whose work, and from whom a task got its context. It needs the extra.

A task that gets the output of another as its context is a handoff from the agent of that one, whose run stays open
until the kickoff ends. A task without context is a root run of its own, or a handoff from the agent in whose tool the
crew was kicked off.
"""

import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final

from batonpass.adapters.frameworks.agent_work import AgentWork


class CrewRun:
    """The works of one kickoff, by task. Tasks of a crew may run side by side."""

    def __init__(self, caller: AgentWork | None, outer: "CrewRun | None") -> None:
        self.caller = caller
        self.outer = outer
        self._works: dict[int, tuple[Any, AgentWork]] = {}  # the task is kept, so that its number stays its own
        self._results: dict[int, str] = {}  # by task, in the order in which they ended
        self._lock = threading.Lock()

    def work_of(self, task: object, begin: Callable[[], AgentWork]) -> AgentWork:
        """Return the work on a task, begun once: a guardrail may let its agent try again."""
        with self._lock:
            known = self._works.get(id(task))
        if known is not None:
            return known[1]
        work = begin()
        with self._lock:
            self._works[id(task)] = task, work
        return work

    def sender_of(self, task: Any, context: object) -> AgentWork | None:
        """Return the work whose result a task gets as its context, the latest if there are several."""
        if not context:
            return self.caller
        named = task.context if isinstance(task.context, list) else None
        with self._lock:
            ended = list(self._results) if named is None else [id(one) for one in named]
            works = [self._works[one][1] for one in ended if one in self._works]
        return works[-1] if works else self.caller

    def note_result(self, task: object, result: str) -> None:
        """Note the result of a task. Its run is still open: it may hand off."""
        with self._lock:
            self._results.pop(id(task), None)
            self._results[id(task)] = result

    def end(self, error: BaseException | None) -> None:
        """End all works, the last first: with their results, and by the error of the kickoff if they have none."""
        with self._lock:
            works: Sequence[tuple[int, AgentWork]] = [(one, work) for one, (_, work) in self._works.items()]
            self._works = {}
        for task, work in reversed(works):
            if task in self._results:
                work.close(self._results[task])
            elif error is not None:
                work.abort(error)


CREW: Final[ContextVar[CrewRun | None]] = ContextVar("batonpass_crewai_crew", default=None)
