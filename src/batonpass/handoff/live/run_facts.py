"""The facts of a run that a program can read: ids, agent, task, baton, notes."""

from batonpass.errors import InvalidValueError
from batonpass.handoff.history.past_calls import Resumption
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.base.ids import AgentId, PrincipalId, RunId
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Item
from batonpass.model.baton.session import SessionState


class RunFacts:
    """The facts of a run: who works, for whom, on which task, and with which notes."""

    _holding: Holding
    _closed: bool = False  # whether it was ended here

    @property
    def id(self) -> RunId:
        """Return the id of the run."""
        return self._holding.id

    @property
    def root(self) -> RunId:
        """Return the root run of its tree."""
        return self._holding.root

    @property
    def parent(self) -> RunId | None:
        """Return the run that handed off its task; None for a root run."""
        return self._holding.working.run.parent

    @property
    def agent(self) -> AgentId:
        """Return the agent that works."""
        return self._holding.agent

    @property
    def principal(self) -> PrincipalId:
        """Return the principal for whom it works."""
        return self._holding.principal

    @property
    def attempt(self) -> int:
        """Return the attempt number, from 1."""
        return self._holding.working.run.attempt

    @property
    def baton(self) -> Baton:
        """Return its baton. Raises `InvalidValueError` for a root run, which has none."""
        if self._holding.baton is None:
            raise InvalidValueError("baton", "a root has none: nobody handed it anything")
        return self._holding.baton

    @property
    def task(self) -> str:
        """Return the exact task; empty for a root run, which has an intent instead."""
        return "" if self._holding.baton is None else self._holding.baton.task

    @property
    def earlier(self) -> Resumption:
        """Return the calls that earlier attempts finished or left in doubt, and their handoffs."""
        return self._holding.resumption

    @property
    def is_replayed(self) -> bool:
        """Return whether it was completed before, and only replays its record: nothing is done again."""
        return self._holding.replaying

    @property
    def session(self) -> SessionState:
        """Return the state of the session that it began with: kept, to be decided again, left, in flight."""
        return self._holding.session

    @property
    def notes(self) -> tuple[Item, ...]:
        """Return the items that travel with its handoffs."""
        return self._holding.carried()
