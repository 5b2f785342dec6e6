"""Where a session stands: its runs, calls and handoffs by the names that Claude Code gives them."""

from collections.abc import Iterator

from msgspec import Struct, field

from batonpass.adapters.claude_code.hooks.events import HookEvent
from batonpass.adapters.claude_code.transcripts.transcript_values import LinkedBy
from batonpass.attribution.git.arrived_commits import HistoryHead
from batonpass.handoff.calls.pending_call import Begun
from batonpass.handoff.runtime.run_state import Holding
from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId, CallId, ContentId, HandoffId, RunId


class Track(Struct, kw_only=True):
    """A run that is being recorded."""

    holding: Holding  # what every door knows of a run that it works on
    agent: str | None = None  # None: the main conversation
    kind: str | None = None  # the type of sub-agent that was asked for, if the call named one
    link: str | None = None  # how it is known which call started it
    candidates: int = 1  # how many calls could have
    open: bool = True

    @property
    def working(self) -> Working:
        """Return what every receipt of the run repeats."""
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
    denied: str | None = None  # what the model was told, if it was refused
    begun: Begun | None = None  # None if it was refused, and as far as anybody knows never made
    asked: bytes | None = None  # tool and arguments as they were told; None: another process was told them
    path: str | None = None  # the file that it was to edit, if it named one and this process was told
    kept: ContentId | None = None  # where the ledger has the same, if another process was told them

    @property
    def is_only_refused(self) -> bool:
        """Return whether it was refused, and nobody has said that it was made all the same."""
        return self.denied is not None and self.begun is None


class Going(Struct, frozen=True, kw_only=True):
    """A command that returned and may be at work still."""

    made: MadeCall
    event: HookEvent
    history: HistoryHead | None  # where the repository stood when it returned
    task: str | None = None  # how Claude Code names it, if it knows of it


class OfferedByCall(Struct, kw_only=True):
    """A handoff that a call offered."""

    handoff: HandoffId
    parent: RunId
    to: AgentId
    call: str | None  # None: nobody knows which call it was
    kind: str | None  # the type of sub-agent, as the call names it
    child: RunId | None = None
    ended: bool = False
    completed: bool = False
    held: str | None = None  # its task, if it had to wait for somebody

    def fits(self, kind: str | None) -> bool:
        """Return whether a sub-agent of this type could have been meant."""
        return kind is None or self.kind in {None, kind}


class HookSession(Struct, kw_only=True):
    """One session, as far as it is recorded: all of it follows from the ledger."""

    session: str
    root: Track | None = None
    runs: dict[RunId, Track] = field(default_factory=dict)  # in the order in which they began
    agents: dict[str, RunId] = field(default_factory=dict)  # the latest run of each sub-agent
    calls: dict[str, MadeCall] = field(default_factory=dict)
    offers: dict[HandoffId, OfferedByCall] = field(default_factory=dict)  # in the order in which they were made
    prompts: dict[str, str] = field(default_factory=dict)  # the human's words by what names them
    said: str | None = None  # the last words of the main conversation
    going: dict[str, Going] = field(default_factory=dict)  # by the name of the call
    unlet: set[str] = field(default_factory=set)  # sub-agents and calls that nobody let begin, and that have ended

    def run_of(self, agent: str | None) -> Track | None:
        """Return the open run of a sub-agent, or of the main conversation."""
        if agent is None:
            return self.root
        track = self.runs.get(self.agents.get(agent, RunId("")))
        return track if track is not None and track.open else None

    def add(self, track: Track) -> None:
        """Know a run from now on."""
        self.runs[track.id] = track
        if track.working.run.parent is None:
            self.root = track
        elif track.agent is not None:
            self.agents[track.agent] = track.id

    def offer_of(self, call: str) -> OfferedByCall | None:
        """Return the handoff that a call offered last."""
        return next((offer for offer in reversed(self.offers.values()) if offer.call == call), None)

    def open_offers(self, kind: str | None = None) -> Iterator[OfferedByCall]:
        """Yield the handoffs to a type of sub-agent that nobody has taken, the earliest first."""
        return (offer for offer in self.offers.values() if offer.child is None and not offer.ended and offer.fits(kind))

    def guessed_offers(self, kind: str | None) -> Iterator[OfferedByCall]:
        """Yield the handoffs to a type that somebody took by a guess: they may be another's."""
        for offer in self.offers.values():
            if offer.child is not None and not offer.ended and offer.fits(kind) and self.runs[offer.child].is_guessed:
                yield offer

    def open_calls(self, run: RunId) -> dict[str, MadeCall]:
        """Return the calls of a run that have no outcome."""
        return {name: made for name, made in self.calls.items() if made.open and made.run == run}
