"""The settings of a program for its framework: the principal, the declarations of tools, and the grants of agents."""

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from batonpass.adapters.frameworks.framework_call import DeclaredTools
from batonpass.default import default_relay
from batonpass.errors import BatonpassError, CallError, GrantError, HandoffError, PolicyFileError
from batonpass.handoff.grants.policy_tables import whole_grant
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.transfer.offer_request import GivenItem
from batonpass.model.base.ids import AgentId, PrincipalId, as_agent, require_principal
from batonpass.model.base.kinds import Mode
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.relay import Relay, desk_of

Done = TypeVar("Done")

_UNCOVERED: Final = "uncovered"
_AT_PROVIDER: Final = "runs at the model's provider"


class FrameworkLedger:
    """The ledger for the agents of one framework, and the program's settings for them. Safe with several threads."""

    def __init__(
        self,
        *,
        by: str | None = None,
        relay: Relay | None = None,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        grants: Mapping[str, GrantRequest | Sequence[str]] | None = None,
        items: Sequence[GivenItem] = (),
        mode: Mode | str | None = None,
        brief: bool | None = None,
    ) -> None:
        self.by = None if by is None else require_principal("by", PrincipalId(by))
        self._relay = relay
        self.grants = {as_agent(agent): _as_request(grant) for agent, grant in (grants or {}).items()}
        self.items = tuple(items)
        self.mode = None if mode is None else Mode(mode)
        self._brief = brief
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self.tools = DeclaredTools(tools or {})
        self.uncovered: dict[str, None] = {}  # tools that nobody can judge here, as flags, in the order they were met
        self.missed = 0
        self.turns: WeakValueDictionary[str, LiveRun] = WeakValueDictionary()  # roots of turns that are at work here
        self.turns_lock = threading.Lock()

    @property
    def relay(self) -> Relay:
        """Return the relay: the one given, else that of this directory."""
        with self._lock:
            if self._relay is None:
                self._relay = default_relay()
            return self._relay

    def briefs(self, *, enforced: bool) -> bool:
        """Return whether models get briefings and marked results. By default only those of enforced runs do."""
        return enforced if self._brief is None else self._brief

    def grant_for(self, run: LiveRun, to: AgentId) -> Grant | None:
        """Return the grant that an agent gets from its sender: the program's, else all that the sender may delegate.

        None if a table of the policy decides, or if the sender has no grant.
        """
        desk, holding = desk_of(self.relay), run._holding  # noqa: SLF001 - as above
        if (said := self.grants.get(to)) is not None:
            return said.at(desk.clock.now())
        return whole_grant(desk, holding, to)

    def leave_uncovered(self, tools: Sequence[str], why: str = _AT_PROVIDER) -> None:
        """Note tools that the framework does not let us judge; say each once, and on every close-out."""
        for tool in tools:
            flag = f"{_UNCOVERED}.{as_agent(tool).lower()}"
            if flag not in self.uncovered:
                self.uncovered[flag] = None
                warnings.warn(f"{tool} {why}: its calls are neither judged nor recorded", stacklevel=2)

    @property
    def enforces(self) -> bool:
        """Return whether a program asks for enforcement, so that nothing goes on of which nobody knows whose it is."""
        return self.mode is Mode.ENFORCED or (self.mode is None and bool(self.grants))

    def attempt(self, act: Callable[[], Done], *, enforced: bool | None = None) -> Done | None:
        """Run a step of the recorder; if it fails, an observed program goes on, and None is returned.

        Raises refusals, a policy that cannot be read, and any fault if it is enforced.
        """
        try:
            return act()
        except (CallError, GrantError, HandoffError, PolicyFileError):
            raise
        except Exception as error:
            if self.enforces if enforced is None else enforced:
                raise
            self.complain(error)
            return None

    def forget_turn(self, run: LiveRun) -> None:
        """Forget that a root run is at work here: the next turn resumes it."""
        with self.turns_lock:
            for key in [key for key, known in self.turns.items() if known is run]:
                del self.turns[key]

    def miss(self) -> None:
        """Count a call that is made without being recorded."""
        with self._lock:
            self.missed += 1

    def complain(self, error: Exception) -> None:
        """Warn that something is not recorded; each sentence once."""
        said = str(error) if isinstance(error, BatonpassError) else f"{type(error).__name__}: {error}"
        with self._lock:
            if said in self._told:
                return
            self._told.add(said)
        warnings.warn(f"not recorded: {said}", stacklevel=2)


def _as_request(grant: GrantRequest | Sequence[str]) -> GrantRequest:
    return grant if isinstance(grant, GrantRequest) else GrantRequest(may=tuple(grant))
