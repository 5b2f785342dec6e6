"""The state of a session: its runs, calls and handoffs, by the names that its agent gives them."""

from collections.abc import Iterator

from msgspec import Struct, field

from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.session_files.session_values import LinkedBy
from batonpass.adapters.tool_kinds import Coder
from batonpass.attribution.git.arrived_commits import HistoryHead
from batonpass.handoff.calls.pending_call import Begun
from batonpass.handoff.runtime.run_state import Holding
from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId, CallId, ContentId, HandoffId, RunId


class Track(Struct, kw_only=True):
    """A run that is being recorded."""

    holding: Holding  # the state that every door keeps of a run
    agent: str | None = None  # None: the main conversation
    kind: str | None = None  # the type of sub-agent in the call, if it named one
    link: str | None = None  # how its call is known
    candidates: int = 1  # number of calls that may have started it
    open: bool = True

    @property
    def working(self) -> Working:
        """Return the facts that every receipt of the run repeats."""
        return self.holding.working

    @property
    def id(self) -> RunId:
        """Return the run's id."""
        return self.working.run.id

    @property
    def is_guessed(self) -> bool:
        """Return whether another call may have started it."""
        return self.link == LinkedBy.INFERRED and self.candidates > 1


class MadeCall(Struct, kw_only=True):
    """A call, by our id."""

    id: CallId
    run: RunId
    tool: str
    open: bool = True
    denied: str | None = None  # the sentence for the model, if it was refused
    begun: Begun | None = None  # None if it was refused and, as far as known, never made
    asked: bytes | None = None  # tool and arguments of the request; None: another process got it
    path: str | None = None  # the file that it was to edit, if this process got the request
    kept: ContentId | None = None  # the content with the arguments, if another process got the request

    @property
    def is_only_refused(self) -> bool:
        """Return whether it was refused, and no event says that it was made anyway."""
        return self.denied is not None and self.begun is None


class Going(Struct, frozen=True, kw_only=True):
    """A command that returned and may still be running."""

    made: MadeCall
    event: HookEvent
    history: HistoryHead | None  # the state of the repository when it returned
    task: str | None = None  # the agent's id of the background task, if it has one


class OfferedByCall(Struct, kw_only=True):
    """A handoff that a call offered."""

    handoff: HandoffId
    parent: RunId
    to: AgentId
    call: str | None  # None: the call is unknown
    kind: str | None  # the type of sub-agent in the call
    child: RunId | None = None
    ended: bool = False
    completed: bool = False
    held: str | None = None  # its task, if it was held
    task: str | None = None  # its task, if this process offered it

    def fits(self, kind: str | None) -> bool:
        """Return whether it may be for a sub-agent of this type."""
        return kind is None or self.kind in {None, kind}


class HookSession(Struct, kw_only=True):
    """The recorded state of one session. All of it can be restored from the ledger."""

    session: str
    coder: Coder = Coder.CLAUDE_CODE
    root: Track | None = None
    runs: dict[RunId, Track] = field(default_factory=dict)  # in order of their start
    agents: dict[str, RunId] = field(default_factory=dict)  # the latest run by sub-agent
    calls: dict[str, MadeCall] = field(default_factory=dict)
    offers: dict[HandoffId, OfferedByCall] = field(default_factory=dict)  # in order
    prompts: dict[str, str] = field(default_factory=dict)  # the human's words by key
    said: str | None = None  # the last words of the main conversation
    going: dict[str, Going] = field(default_factory=dict)  # by the id of the call
    awaited: dict[str, list[str]] = field(default_factory=dict)  # our names of calls that began, by what they are
    unlet: set[str] = field(default_factory=set)  # sub-agents and calls that were not allowed to start, and have ended

    def run_of(self, agent: str | None) -> Track | None:
        """Return the open run of a sub-agent, or of the main conversation."""
        if agent is None:
            return self.root
        track = self.runs.get(self.agents.get(agent, RunId("")))
        return track if track is not None and track.open else None

    def add(self, track: Track) -> None:
        """Add a run."""
        self.runs[track.id] = track
        if track.working.run.parent is None:
            self.root = track
        elif track.agent is not None:
            self.agents[track.agent] = track.id

    def offer_of(self, call: str) -> OfferedByCall | None:
        """Return the latest handoff that a call offered."""
        return next((offer for offer in reversed(self.offers.values()) if offer.call == call), None)

    def open_offers(self, kind: str | None = None) -> Iterator[OfferedByCall]:
        """Yield the handoffs to a type of sub-agent that nobody has taken, earliest first."""
        return (offer for offer in self.offers.values() if offer.child is None and not offer.ended and offer.fits(kind))

    def guessed_offers(self, kind: str | None) -> Iterator[OfferedByCall]:
        """Yield the handoffs to a type that were taken by a guess: they may belong to another sub-agent."""
        for offer in self.offers.values():
            if offer.child is not None and not offer.ended and offer.fits(kind) and self.runs[offer.child].is_guessed:
                yield offer

    def open_calls(self, run: RunId) -> dict[str, MadeCall]:
        """Return the calls of a run without an outcome."""
        return {name: made for name, made in self.calls.items() if made.open and made.run == run}
