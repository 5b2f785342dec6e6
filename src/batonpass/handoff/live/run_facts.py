"""What a run says of itself to whoever holds it."""

from batonpass.errors import InvalidValueError
from batonpass.handoff.history.past_calls import Resumption
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.base.ids import AgentId, PrincipalId, RunId
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Item
from batonpass.model.baton.session import SessionState


class RunFacts:
    """Who works, for whom, on what, and with what at hand."""

    _holding: Holding

    @property
    def id(self) -> RunId:
        """Return the run's id."""
        return self._holding.id

    @property
    def root(self) -> RunId:
        """Return the root of its tree."""
        return self._holding.root

    @property
    def parent(self) -> RunId | None:
        """Return the run that handed its task on; None for a root."""
        return self._holding.working.run.parent

    @property
    def agent(self) -> AgentId:
        """Return who works."""
        return self._holding.agent

    @property
    def principal(self) -> PrincipalId:
        """Return for whom."""
        return self._holding.principal

    @property
    def attempt(self) -> int:
        """Return the how-manyth attempt at its handoff this is."""
        return self._holding.working.run.attempt

    @property
    def baton(self) -> Baton:
        """Return what it was given. Raises `InvalidValueError` for a root, which was given only its intent."""
        if self._holding.baton is None:
            raise InvalidValueError("baton", "a root has none: nobody handed it anything")
        return self._holding.baton

    @property
    def task(self) -> str:
        """Return the exact task; of a root, nothing: its intent says it."""
        return "" if self._holding.baton is None else self._holding.baton.task

    @property
    def earlier(self) -> Resumption:
        """Return what earlier attempts finished, left in doubt and handed off."""
        return self._holding.resumption

    @property
    def session(self) -> SessionState:
        """Return what it began with, if it goes on where others stopped: kept, to be decided again, left, in flight."""
        return self._holding.session

    @property
    def notes(self) -> tuple[Item, ...]:
        """Return everything that travels with what it hands off."""
        return self._holding.carried()
